"""The support agent as a graph of LangChain and LangGraph."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from example_project.shop.frameworks import INSTRUCTIONS
from example_project.shop.model import Message, ask_model, tool_result


def make_agent(tools: list[Any], model: str) -> Any:
    """Return the agent; without a model's name it asks the scripted one."""
    return create_agent(model or ScriptedChat(), tools, system_prompt=INSTRUCTIONS)


class ScriptedChat(BaseChatModel):
    """The scripted model as one of LangChain's."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Take note of nothing: the script knows its tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        said = [_plain(one) for one in messages if one.type in ("human", "tool")]
        reply = ask_model(said)
        message = AIMessage(reply["content"], tool_calls=reply["tool_calls"])
        return ChatResult(generations=[ChatGeneration(message=message)])


def _plain(message: BaseMessage) -> Message:
    if isinstance(message, ToolMessage):
        return tool_result(str(message.name), str(message.text))
    return {"role": "user", "content": str(message.text)}
