"""Which tests the plain run plays on one database only, so that both runs end together.

`make test-everywhere` plays all on both.
"""

from __future__ import annotations

NO_DATABASE = ("tests/architecture", "tests/docs", "tests/model", "tests/unit")
"""Tests that no database can change."""

ON_SQLITE = (
    *NO_DATABASE,
    # Pages, forms and texts: what they read and write is tried on both by others. The lists
    # of the desk, what is decided there and its figures are asked of both.
    "tests/admin/test_clients.py",
    "tests/admin/test_deliveries.py",
    "tests/admin/test_detail.py",
    "tests/admin/test_edit.py",
    "tests/admin/test_fields.py",
    "tests/admin/test_fork.py",
    "tests/admin/test_groups.py",
    "tests/admin/test_hands.py",
    "tests/admin/test_i18n.py",
    "tests/admin/test_keys.py",
    "tests/admin/test_other_models.py",
    "tests/admin/test_question.py",
    "tests/admin/test_reasons_and_skipping.py",
    "tests/admin/test_remote.py",
    "tests/admin/test_roles.py",
    "tests/admin/test_settle.py",
    "tests/admin/test_site.py",
    "tests/admin/test_stale.py",
    "tests/admin/test_stopped.py",
    "tests/admin/test_subclass.py",
    # Rights, statuses and bodies of verbs that are themselves tried on both.
    "tests/api/test_authentication.py",
    "tests/api/test_claims.py",
    "tests/api/test_errors.py",
    "tests/api/test_remote.py",
    "tests/api/test_rest_docs.py",
    "tests/api/test_settle_and_steer.py",
    "tests/api/test_throttles.py",
    # The document is made from tables of the code.
    "tests/api/test_schema.py",
    "tests/api/test_schema_examples.py",
    # Stores of their own, whatever database the site has.
    "tests/approvals/test_fake_handler.py",
    "tests/approvals/test_first_seed.py",
    "tests/approvals/test_gate.py",
    "tests/approvals/test_random_runs.py",
    "tests/approvals/test_resume.py",
    "tests/executor/test_plain.py",
    "tests/executor/test_same_semantics.py",
    "tests/frameworks/test_contract_finds.py",
    "tests/frameworks/test_openai_agents.py",
    "tests/stores/test_memory.py",
    "tests/stores/test_memory_checkpoints.py",
    "tests/stores/test_redis.py",
    "tests/stores/test_sqlite_checkpoints.py",
    # The contract that agents keep is tried on both by those of the engine.
    "tests/frameworks/test_contract.py",
    # Sites that differ in everything but their database.
    "tests/sites",
    # What is sent, and where it may go.
    "tests/webhooks/test_addresses.py",
    "tests/webhooks/test_checks.py",
    "tests/webhooks/test_sender.py",
)
ON_POSTGRESQL = (
    # What is sent in earnest: PostgreSQL is the stricter one about text.
    "tests/admin/test_hostile.py",
    "tests/admin/test_payloads.py",
    "tests/api/test_every_body.py",
    "tests/api/test_hostile_json.py",
    "tests/api/test_matrix.py",
    "tests/api/test_remote_access.py",
    "tests/api/test_remote_bodies.py",
    # Races, lost answers and servers that many wait for: with more than one writer at a time.
    "tests/api/test_wait_asgi.py",
    "tests/concurrency/test_doors.py",
    "tests/executor/test_agent_contract.py",
    "tests/executor/test_doors.py",
    "tests/properties/test_machine.py",
    "tests/replay",
)
