import { urlOf } from "../network/http-server.ts";
import { loginLink } from "../operators/login-link.ts";
import { misuse, type Outcome, type Shell } from "./command.ts";
import { withLedger } from "./open-ledger.ts";
import { ensureConfig } from "./settings.ts";

/** `operator login-link` */
export function printLoginLink(
  shell: Shell,
  options: { readonly operator?: string | undefined },
): Promise<Outcome> {
  const url = loginAddress(shell);
  return withLedger(shell, async (ledger) => {
    const { operator, secret } = await ledger.createLoginCode(options.operator ?? null);
    const link = loginLink(url, secret);
    const { createdAtMs, id, name, role } = operator;
    // A link is only for an operator who is not revoked.
    const shown = { id, name, role, created: new Date(createdAtMs).toISOString(), revoked: null };
    return { json: { operator: shown, link }, text: `${link}\n` };
  });
}

/** Where the settings say that operators are listened to. */
export function loginAddress(shell: Shell): string {
  const { operator } = ensureConfig(shell);
  if (operator === null)
    throw misuse("TRIBUTARY_OPERATOR_PORT=off: the service listens for operators nowhere.");
  return operator.publicUrl ?? urlOf(operator);
}
