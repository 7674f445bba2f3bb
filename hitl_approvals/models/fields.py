"""The one field for every JSON column: canonical text in, Python values out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from hitl_approvals import canonical

STORED_MAX_BYTES = 64 * 1024 * 1024
"""What a column may hold; the gate's own, smaller limits stand in the settings."""
STORED_MAX_DEPTH = 200


if TYPE_CHECKING:
    TextField = models.TextField[Any, Any]
else:
    TextField = models.TextField


class CanonicalJSONField(TextField):
    """JSON as canonical ASCII text (see `canonical`); `None` is SQL NULL.

    A JSON column type would reorder keys, refuse NUL or round numbers, each on some
    database. Text holds the same bytes everywhere, so a digest over it stays true.
    """

    if TYPE_CHECKING:
        # What django-stubs reads: any JSON value may be set and read.
        _pyi_private_set_type: Any
        _pyi_private_get_type: Any
        _pyi_lookup_exact_type: Any

    def from_db_value(
        self, value: str | None, expression: Any, connection: BaseDatabaseWrapper
    ) -> Any:
        if value is None:
            return None
        return canonical.loads(
            value, max_bytes=STORED_MAX_BYTES, max_depth=STORED_MAX_DEPTH
        )

    def get_prep_value(self, value: Any) -> Any:
        if value is None or hasattr(value, "resolve_expression"):
            return value
        return canonical.dumps(
            value, max_bytes=STORED_MAX_BYTES, max_depth=STORED_MAX_DEPTH
        )

    def value_to_string(self, obj: models.Model) -> Any:
        # Fixtures carry the value itself, as Django's own JSONField does.
        return self.value_from_object(obj)

    def to_python(self, value: Any) -> Any:
        return value
