import type { Exchange } from "./exchange.ts";
import { handleAlive } from "./health-handler.ts";
import type { Service } from "./service.ts";

/** `/`: the page for callers where a browser asks for one; for all others a sign of life. */
export async function handleStart(exchange: Exchange, service: Service): Promise<void> {
  if (exchange.request.headers.accept?.includes("text/html") === true)
    await handlePage(exchange, service);
  else {
    exchange.response.setHeader("vary", "accept");
    handleAlive(exchange);
  }
}

/** The files of that page. */
export async function handlePage({ request, response }: Exchange, service: Service): Promise<void> {
  await service.page(request, response);
}
