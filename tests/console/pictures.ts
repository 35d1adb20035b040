import { statSync } from "node:fs";
import { join } from "node:path";
import { openPage, startBrowser } from "./browser.ts";
import { startConsole } from "./start-console.ts";

// Makes the two pictures of README.md: npm run pictures

const folder = join(import.meta.dirname, "../../docs/pictures");
const bytesMax = 200_000;

const [browser, service] = await Promise.all([
  startBrowser(),
  startConsole({ accounts: 40, keys: 90, receipts: 6_000 }),
]);
const { token } = await service.newOperator("owner");
const [account] = await service.list("account");
const { page } = await openPage(browser, { width: 1200, dark: false });
await page.setViewportSize({ width: 1200, height: 620 });
const headers = { authorization: `Bearer ${token}` };
await fetch(`${service.operatorUrl}/api/v1/verify`, { method: "POST", headers });
await page.goto(service.operatorUrl);
await page.getByLabel("Operator's token").fill(token);
await page.getByRole("button", { name: "Sign in" }).click();
await page.locator(".plot canvas").first().waitFor();
await page.locator(".most li").first().waitFor();
// The figure is asked for when the page begins, and the ledger is added up by then or soon after.
while (!/right/.test((await page.locator(".figure", { hasText: "Ledger" }).textContent()) ?? "")) {
  await page.reload();
  await page.locator(".most li").first().waitFor();
}
await page.screenshot({ path: join(folder, "overview.png") });

await page.goto(`${service.operatorUrl}/#/playground`);
await page.getByText("Make a key that expires in an hour").click();
await page.getByLabel("Account that pays").fill(account?.["id"] ?? "");
await page.getByRole("button", { name: "Make the key" }).click();
await page.getByRole("button", { name: "Send" }).click();
await page.locator(".figure", { hasText: "Cost" }).getByRole("link").waitFor();
await page.getByText("Charged for what it used").waitFor();
await page.screenshot({ path: join(folder, "playground.png") });
await browser.close();
await service[Symbol.asyncDispose]();
const names = ["overview.png", "playground.png"];
const bytes = names.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
if (bytes > bytesMax) throw new Error(`the two pictures have ${String(bytes)} bytes`);
