"""The Python package `openai`, spoken to as its documentation does."""

import asyncio
import json

from driver import WEATHER, serve, weather
from openai import AsyncOpenAI, LengthFinishReasonError, OpenAI
from openai.lib.responses_tool_runner import AsyncRegisteredFunction, AsyncResponsesToolRunner

MODEL = "service-llm"
CHAT_TOOL = {
    "type": "function",
    "function": {
        "name": WEATHER["name"],
        "description": WEATHER["description"],
        "parameters": WEATHER["schema"],
    },
}
RESPONSES_TOOL = {
    "type": "function",
    "name": WEATHER["name"],
    "description": WEATHER["description"],
    "parameters": WEATHER["schema"],
    "strict": False,
}
SEALED = {"store": False, "include": ["reasoning.encrypted_content"]}


class Chat:
    def __init__(self, client: AsyncOpenAI, on_text) -> None:
        self.completions = client.chat.completions
        self.on_text = on_text

    def params(self, order: dict) -> dict:
        tools = {"tools": [CHAT_TOOL]} if order.get("tools") else {}
        return {"model": MODEL, "messages": [user(order["prompt"])], **tools}

    async def whole(self, order: dict) -> dict:
        return see_completion(await self.completions.create(**self.params(order)))

    async def streamed(self, order: dict) -> dict:
        return see_completion(await self.stream(**self.params(order)))

    async def stream(self, **params):
        options = {"include_usage": True}
        async with self.completions.stream(**params, stream_options=options) as stream:
            try:
                async for event in stream:
                    if event.type == "content.delta" and event.delta:
                        self.on_text(event.delta)
                return await stream.get_final_completion()
            except LengthFinishReasonError:
                # An answer that was cut is an error to this helper; what it read is there all the same.
                return stream.current_completion_snapshot

    async def raw(self, order: dict) -> dict:
        """Chunk by chunk, as most programs do."""
        text = ""
        async for chunk in await self.completions.create(**self.params(order), stream=True):
            for choice in chunk.choices:
                text += choice.delta.content or ""
        return {"text": text}

    async def impossible(self, order: dict) -> None:
        await self.completions.create(**self.params({"prompt": "Hello"}), n=2)

    async def converse(self, order: dict) -> list:
        messages, texts = [], []
        for prompt in order["prompts"]:
            messages.append(user(prompt))
            completion = await self.completions.create(model=MODEL, messages=messages)
            messages.append(completion.choices[0].message)
            texts.append(completion.choices[0].message.content)
        return texts

    async def loop(self, order: dict) -> str:
        messages = [user(order["prompt"])]
        create = self.stream if order["way"] == "by hand, streamed" else self.completions.create
        while True:
            completion = await create(model=MODEL, messages=messages, tools=[CHAT_TOOL])
            message = completion.choices[0].message
            if not message.tool_calls:
                return message.content
            messages.append(message)
            for call in message.tool_calls:
                content = weather(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": content})


def user(content: str) -> dict:
    return {"role": "user", "content": content}


def see_completion(completion) -> dict:
    choice = completion.choices[0]
    message = choice.message
    vendor = completion.to_dict(mode="json", exclude_none=True)
    # Nothing is said as null in a body, and as an empty text by the helper.
    vendor["choices"][0]["message"]["content"] = message.content or ""
    return {
        "text": message.content or "",
        "reasoning": (message.model_extra or {}).get("reasoning_content", ""),
        "calls": [
            {
                "id": call.id,
                "name": call.function.name,
                "input": json.loads(call.function.arguments),
            }
            for call in message.tool_calls or []
        ],
        "finish": choice.finish_reason,
        "inputTokens": completion.usage.prompt_tokens,
        "outputTokens": completion.usage.completion_tokens,
        "vendor": vendor,
    }


class Responses:
    def __init__(self, client: AsyncOpenAI, on_text) -> None:
        self.client = client
        self.responses = client.responses
        self.on_text = on_text

    def params(self, order: dict) -> dict:
        tools = {"tools": [RESPONSES_TOOL]} if order.get("tools") else {}
        return {"model": MODEL, "input": order["prompt"], **SEALED, **tools}

    async def whole(self, order: dict) -> dict:
        return see_response(await self.responses.create(**self.params(order)))

    async def streamed(self, order: dict) -> dict:
        return see_response(await self.stream(**self.params(order)))

    async def stream(self, **params):
        async with self.responses.stream(**params) as stream:
            async for event in stream:
                if event.type == "response.output_text.delta":
                    self.on_text(event.delta)
                if event.type == "response.incomplete":
                    # The helper has a final response only of an answer that was not cut.
                    return event.response
            return await stream.get_final_response()

    async def raw(self, order: dict) -> dict:
        text = ""
        async for event in await self.responses.create(**self.params(order), stream=True):
            if event.type == "response.output_text.delta":
                text += event.delta
        return {"text": text}

    async def impossible(self, order: dict) -> None:
        params = self.params({"prompt": "Hello"})
        await self.responses.create(**params, previous_response_id="resp_1")

    async def converse(self, order: dict) -> list:
        history, texts = [], []
        for prompt in order["prompts"]:
            history.append(user(prompt))
            response = await self.responses.create(model=MODEL, input=history, **SEALED)
            history += response.output
            texts.append(response.output_text)
        return texts

    async def loop(self, order: dict) -> str:
        if order["way"] == "its tool runner":
            return await self.run_tools(order["prompt"])
        history = [user(order["prompt"])]
        create = self.stream if order["way"] == "by hand, streamed" else self.responses.create
        while True:
            response = await create(model=MODEL, input=history, tools=[RESPONSES_TOOL], **SEALED)
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                return response.output_text
            history += response.output
            for call in calls:
                output = weather(**json.loads(call.arguments))
                result = {"type": "function_call_output", "call_id": call.call_id, "output": output}
                history.append(result)

    async def run_tools(self, prompt: str) -> str:
        async def execute(arguments) -> str:
            return weather(**arguments)

        runner = AsyncResponsesToolRunner(functions=[AsyncRegisteredFunction(RESPONSES_TOOL, execute)])
        response = await runner.run(self.client, {"model": MODEL, "input": prompt, **SEALED})
        return response.output_text


def see_response(response) -> dict:
    thoughts = [item.content or [] for item in response.output if item.type == "reasoning"]
    cut = response.incomplete_details
    return {
        "text": response.output_text,
        "reasoning": "".join(part.text for parts in thoughts for part in parts),
        "calls": [
            {"id": item.call_id, "name": item.name, "input": json.loads(item.arguments)}
            for item in response.output
            if item.type == "function_call"
        ],
        "finish": response.status if cut is None else cut.reason,
        "inputTokens": response.usage.input_tokens,
        "outputTokens": response.usage.output_tokens,
        "vendor": response.to_dict(mode="json", exclude_none=True),
    }


CLIENTS = {"chat": Chat, "responses": Responses}


def settings(order: dict) -> dict:
    url, key, retries = order["url"], order["key"], order["maxRetries"]
    return {"base_url": f"{url}/v1", "api_key": key, "max_retries": retries}


def leave_early(order: dict) -> str:
    """The client without asyncio: a loop that breaks off, and the stream closed by its `with`."""
    with OpenAI(**settings(order)) as client:
        messages = [user(order["prompt"])]
        with client.chat.completions.create(model=MODEL, messages=messages, stream=True) as stream:
            for chunk in stream:
                if chunk.choices[0].delta.content:
                    return chunk.choices[0].delta.content
    return ""


def block(order: dict) -> list:
    """The same client: a whole answer, a stream, models."""
    with OpenAI(**settings(order)) as client:
        asked = {"model": MODEL, "messages": [user(order["prompt"])]}
        whole = client.chat.completions.create(**asked).choices[0].message.content
        with client.chat.completions.stream(**asked) as stream:
            streamed = stream.get_final_completion().choices[0].message.content
        response = client.responses.create(model=MODEL, input=order["prompt"], **SEALED)
        return [whole, streamed, response.output_text, *[entry.id for entry in client.models.list()]]


BLOCKING = {"block": block, "leave early": leave_early}


async def perform(order: dict, on_text):
    if order["do"] in BLOCKING:
        return await asyncio.to_thread(BLOCKING[order["do"]], order)
    async with AsyncOpenAI(**settings(order)) as client:
        if order["do"] == "models":
            return [entry.id async for entry in client.models.list()]
        return await getattr(CLIENTS[order["client"]](client, on_text), order["do"])(order)


asyncio.run(serve(perform))
