"""What every kind of agent has to do, as a pytest class to inherit from.

class TestMyAgent(AgentContract):
    kind = "shop.frameworks.mine"

    def make_agent(self, name, tools, script):
        agent(name, kind=self.kind, tools=tools)(lambda tools: MyAgent(tools, script))

Needs pytest-django, a test database that other processes can open, and `os.fork`.
"""

from __future__ import annotations

from hitl_approvals.testing.agent_contract_crashing import AgentCrashing
from hitl_approvals.testing.agent_contract_deciding import AgentDeciding
from hitl_approvals.testing.agent_contract_drift import AgentDrift
from hitl_approvals.testing.agent_contract_pausing import AgentPausing


class AgentContract(AgentDeciding, AgentPausing, AgentCrashing, AgentDrift):
    """Tests of one kind of agent. Set `kind` and override `make_agent`.

    Whatever a kind cannot do it says in its `Capabilities`, which these tests read. Every
    effect is counted in a file that a killed process leaves behind.
    """
