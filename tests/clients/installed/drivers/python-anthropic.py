"""The Python package `anthropic`, spoken to as its documentation does."""

import asyncio

from anthropic import Anthropic, AsyncAnthropic, beta_async_tool
from driver import WEATHER, serve, weather

MODEL = "service-llm"
TOOL = {
    "name": WEATHER["name"],
    "description": WEATHER["description"],
    "input_schema": WEATHER["schema"],
}
PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}


@beta_async_tool(name=WEATHER["name"], description=WEATHER["description"])
async def run_weather(city: str) -> str:
    return weather(city)


class Messages:
    def __init__(self, client: AsyncAnthropic, on_text) -> None:
        self.client = client
        self.messages = client.messages
        self.on_text = on_text

    def params(self, order: dict) -> dict:
        tools = {"tools": [TOOL]} if order.get("tools") else {}
        return {"model": MODEL, "max_tokens": 1000, "messages": [user(order["prompt"])], **tools}

    async def whole(self, order: dict) -> dict:
        return see_message(await self.messages.create(**self.params(order)))

    async def streamed(self, order: dict) -> dict:
        return see_message(await self.stream(**self.params(order)))

    async def stream(self, **params):
        async with self.messages.stream(**params) as stream:
            async for text in stream.text_stream:
                self.on_text(text)
            return await stream.get_final_message()

    async def raw(self, order: dict) -> dict:
        """Event by event."""
        text = ""
        async for event in await self.messages.create(**self.params(order), stream=True):
            if event.type == "content_block_delta" and event.delta.type == "text_delta":
                text += event.delta.text
        return {"text": text}

    async def impossible(self, order: dict) -> None:
        picture = user([{"type": "image", "source": PNG}])
        await self.messages.create(model=MODEL, max_tokens=1000, messages=[picture])

    async def converse(self, order: dict) -> list:
        history, texts = [], []
        for prompt in order["prompts"]:
            history.append(user(prompt))
            message = await self.messages.create(model=MODEL, max_tokens=1000, messages=history)
            history.append({"role": "assistant", "content": message.content})
            texts.append(text_of(message))
        return texts

    async def count(self, order: dict) -> int:
        counted = await self.messages.count_tokens(model=MODEL, messages=[user(order["prompt"])])
        return counted.input_tokens

    async def loop(self, order: dict) -> str:
        way = order["way"]
        if way.startswith("tool_runner"):
            return await self.run_tools(order["prompt"], way == "tool_runner, streamed")
        history = [user(order["prompt"])]
        create = self.stream if way == "by hand, streamed" else self.messages.create
        while True:
            message = await create(model=MODEL, max_tokens=1000, messages=history, tools=[TOOL])
            if message.stop_reason != "tool_use":
                return text_of(message)
            history.append({"role": "assistant", "content": message.content})
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": weather(**block.input)}
                for block in message.content
                if block.type == "tool_use"
            ]
            history.append(user(results))

    async def run_tools(self, prompt: str, stream: bool) -> str:
        runner = self.client.beta.messages.tool_runner(
            model=MODEL,
            max_tokens=1000,
            messages=[user(prompt)],
            tools=[run_weather],
            stream=stream,
        )
        return text_of(await runner.until_done())


def user(content) -> dict:
    return {"role": "user", "content": content}


def text_of(message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def see_message(message) -> dict:
    usage = message.usage
    return {
        "text": text_of(message),
        "reasoning": "".join(b.thinking for b in message.content if b.type == "thinking"),
        "calls": [
            {"id": block.id, "name": block.name, "input": block.input}
            for block in message.content
            if block.type == "tool_use"
        ],
        "finish": message.stop_reason,
        # The parts add up to the prompt.
        "inputTokens": usage.input_tokens + (usage.cache_read_input_tokens or 0),
        "outputTokens": usage.output_tokens,
        "vendor": message.to_dict(mode="json", exclude_none=True),
    }


def settings(order: dict) -> dict:
    return {"base_url": order["url"], "api_key": order["key"], "max_retries": order["maxRetries"]}


def leave_early(order: dict) -> str:
    """The client without asyncio: a loop that breaks off, and the stream closed by its `with`."""
    with Anthropic(**settings(order)) as client:
        messages = [user(order["prompt"])]
        with client.messages.stream(model=MODEL, max_tokens=1000, messages=messages) as stream:
            return next(iter(stream.text_stream), "")


def block(order: dict) -> list:
    """The same client: a whole answer, streams in both ways, models."""
    with Anthropic(**settings(order)) as client:
        asked = {"model": MODEL, "max_tokens": 1000, "messages": [user(order["prompt"])]}
        whole = text_of(client.messages.create(**asked))
        with client.messages.stream(**asked) as stream:
            streamed = stream.get_final_text()
        with client.messages.stream(**asked) as stream:
            pieces = "".join(stream.text_stream)
        return [whole, streamed, pieces, *[entry.id for entry in client.models.list()]]


BLOCKING = {"block": block, "leave early": leave_early}


async def perform(order: dict, on_text):
    if order["do"] in BLOCKING:
        return await asyncio.to_thread(BLOCKING[order["do"]], order)
    async with AsyncAnthropic(**settings(order)) as client:
        if order["do"] == "models":
            return [entry.id async for entry in client.models.list()]
        return await getattr(Messages(client, on_text), order["do"])(order)


asyncio.run(serve(perform))
