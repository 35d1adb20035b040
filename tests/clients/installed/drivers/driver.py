"""Follows orders on standard input, a line of JSON each, and tells what a client of the service saw."""

import asyncio
import json
import sys

LINE_BYTES_MAX = 16 * 1024 * 1024

WEATHER = {
    "name": "weather",
    "description": "Tells the weather of a city",
    "schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}


def weather(city: str) -> str:
    return f"{city}: sun, 21 degrees"


def tell(**words) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def see_error(error: Exception) -> dict:
    """Errors of both SDKs have the same attributes."""
    response = getattr(error, "response", None)
    return {
        "status": getattr(error, "status_code", None),
        "name": type(error).__name__,
        "message": str(error),
        "retryAfter": None if response is None else response.headers.get("retry-after"),
        "requestId": getattr(error, "request_id", None),
    }


async def follow(order: dict, perform) -> None:
    number = order["id"]
    try:
        tell(id=number, answer=await perform(order, lambda text: tell(id=number, text=text)))
    except asyncio.CancelledError:
        tell(id=number, error={"name": "CancelledError", "message": "the application left"})
    except Exception as error:
        tell(id=number, error=see_error(error))


async def serve(perform) -> None:
    """Each order is a task of its own; an order to leave cancels it, as an application does."""
    orders = asyncio.StreamReader(limit=LINE_BYTES_MAX)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    tasks = {}
    tell(ready=True)
    while line := await orders.readline():
        order = json.loads(line)
        if order.get("leave"):
            tasks[order["id"]].cancel()
        else:
            tasks[order["id"]] = asyncio.create_task(follow(order, perform))
