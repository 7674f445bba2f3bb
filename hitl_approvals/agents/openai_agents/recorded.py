"""Models whose replies are recorded, whoever makes them."""

from __future__ import annotations

from functools import partial
from typing import Any

from agents import Model, ModelProvider, ModelResponse, MultiProvider

from hitl_approvals.agents.openai_agents.lasting import lastingly
from hitl_approvals.agents.openai_agents.performing import performance
from hitl_approvals.exceptions import RunDiverged, UnsafeContext


class Recorded(Model):
    """Another model, whose replies a running turn records and replays."""

    def __init__(self, model: Model) -> None:
        self.model = model

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,  # noqa: A002  the SDK's word
        model_settings: Any,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Any],
        *args: Any,
        **kwargs: Any,
    ) -> ModelResponse:
        """Return the next reply: from the record, else from the model.

        Raises:
            RunDiverged: A tool or a handoff is new, and no gate would stand before it.
        """
        get = partial(
            self.model.get_response,
            system_instructions,
            input,
            model_settings,
            tools,
            output_schema,
            handoffs,
            *args,
            **kwargs,
        )
        ask = partial(lastingly, get)
        run = performance()
        if run is None:
            return await ask()
        run.look_at(tools, handoffs)
        return await run.reply(ask, input)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: what was streamed could not be recorded as one reply.

        Raises:
            RunDiverged: Always, inside a turn.
            UnsafeContext: Elsewhere.
        """
        run = performance()
        told = (
            "Replies cannot be streamed in a turn. Take `on_stream` from the agent that "
            "is used as a tool."
        )
        if run is not None:
            run.turn.stop(RunDiverged(told))
        raise UnsafeContext(told)

    def get_retry_advice(self, request: Any) -> Any:
        return self.model.get_retry_advice(request)

    async def close(self) -> None:
        await lastingly(self.model.close)

    async def _cleanup_on_run_end(self, owner: object) -> None:
        cleanup = self.model._cleanup_on_run_end  # noqa: SLF001  the SDK's own hook
        await lastingly(cleanup, owner)

    def __getattr__(self, name: str) -> Any:
        # The SDK asks models for traits that not all have.
        if name == "model":
            raise AttributeError(name)
        return getattr(self.model, name)


class RecordingProvider(ModelProvider):
    """Finds models by name, as the SDK does, and records what they reply."""

    def __init__(self) -> None:
        self._provider = MultiProvider()

    def get_model(self, model_name: str | None) -> Model:
        """Return the model of a name; None is the SDK's default."""
        return Recorded(self._provider.get_model(model_name))

    async def aclose(self) -> None:
        """Release what the models of this run held."""
        await lastingly(self._provider.aclose)
