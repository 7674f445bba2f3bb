"""Stands around a run: records the model's replies, and lets no unknown tool in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.native_tools import AbstractNativeTool
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from hitl_approvals.agents.framework import in_worker
from hitl_approvals.agents.pydantic_ai.conversation import dumped, loaded
from hitl_approvals.agents.pydantic_ai.tools import (
    never_given_up,
    require_known,
    require_known_far,
)
from hitl_approvals.agents.pydantic_ai.visit import Visit
from hitl_approvals.exceptions import HitlConfigurationError


class RecordedModel(WrapperModel):
    """A model that is asked once for each reply of a turn."""

    def __init__(self, wrapped: Model, visit: Visit) -> None:
        super().__init__(wrapped)
        self._visit = visit

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Return the next reply.

        Raises:
            PayloadRejected: The reply cannot be recorded.
            LeaseLost: The turn is not this run's any more.
            RunDiverged: The provider would run a tool that no gate stands before.
        """
        far = self._used_far(model_settings, model_request_parameters)
        require_known_far(far, self._visit.turn)

        async def ask() -> Any:
            reply = await self.wrapped.request(
                messages, model_settings, model_request_parameters
            )
            return dumped([reply])[0]

        self._visit.asking = True
        recorded = await in_worker(self._visit.turn.reply, ask, result_type=None)
        self._visit.asking = False
        (reply,) = loaded([recorded])
        made: ModelResponse = reply
        return made

    def _used_far(
        self, settings: ModelSettings | None, parameters: ModelRequestParameters
    ) -> list[AbstractNativeTool]:
        if not parameters.native_tools:
            return []
        # A model leaves out what it does not know and a tool here stands in for.
        _settings, prepared = self.wrapped.prepare_request(settings, parameters)
        used = {one.unique_id for one in prepared.native_tools}
        return [one for one in parameters.native_tools if one.unique_id in used]

    def request_stream(self, *_given: Any, **_options: Any) -> NoReturn:
        """Refuse: a stream cannot be recorded before it is acted on.

        Raises:
            HitlConfigurationError: Always.
        """
        raise HitlConfigurationError(
            "A turn's replies are recorded as a whole, so nothing is streamed: leave "
            "`event_stream_handler=` out of the agent."
        )


@dataclass
class Journal(AbstractCapability[Any]):
    """Records the replies of whichever model a run picks, overridden ones included."""

    visit: Visit

    async def wrap_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,
        handler: Any,
    ) -> ModelResponse:
        """Count the reply that comes now, whoever gives it.

        Raises:
            RunDiverged: A decided call was passed over before it.
        """
        self.visit.require_all_entered()
        self.visit.steps = self.visit.steps_before + ctx.run_step
        reply: ModelResponse = await handler(request_context)
        return reply

    async def prepare_tools(
        self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]
    ) -> list[ToolDefinition]:
        """Look at the tools before the model is told of them.

        Raises:
            RunDiverged: No gate stands before one of them.
        """
        require_known(tool_defs, self.visit)
        return [never_given_up(one) for one in tool_defs]

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, tool_def: ToolDefinition, **given: Any
    ) -> Any:
        """Look at a tool again before it is entered: another hook may have added it.

        Raises:
            RunDiverged: No gate stands before it.
        """
        require_known([tool_def], self.visit)
        return await given["handler"](given["args"])

    def get_wrapper_model(self, model: Model) -> Model:
        """Wrap the model that serves a request."""
        return RecordedModel(model, self.visit)

    def get_ordering(self) -> CapabilityOrdering:
        """Stand outside of what would ask without us, a batch API for one."""
        return CapabilityOrdering(position="outermost")
