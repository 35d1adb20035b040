import type { OperatorRole } from "../ledger/administration/operator-administration.ts";

/** The least role of each operation: an owner may do everything, a viewer only what viewers may; null: no token is needed. */
export const leastRoles = {
  openSession: null,
  showSession: "viewer",
  endSession: "viewer",
  listAccounts: "viewer",
  createAccount: "billing",
  showAccount: "viewer",
  changeAccount: "billing",
  addCredit: "billing",
  listEntries: "viewer",
  showStatement: "viewer",
  listKeys: "viewer",
  createKey: "billing",
  findKeys: "viewer",
  showKey: "viewer",
  changeKey: "billing",
  rotateKey: "billing",
  revokeKey: "billing",
  listPriceLists: "viewer",
  createPriceList: "billing",
  showPriceList: "viewer",
  changePriceList: "billing",
  sumUsage: "viewer",
  listReceipts: "viewer",
  showReceipt: "viewer",
  listGenerations: "viewer",
  listOperators: "viewer",
  createOperator: "owner",
  revokeOperator: "owner",
  listAudit: "viewer",
  cancelGeneration: "billing",
  listRefusals: "viewer",
  watchLive: "viewer",
  showStatus: "viewer",
  drainReplica: "owner",
  listSettings: "viewer",
  showDeployment: "viewer",
  listWebhooks: "viewer",
  createWebhook: "owner",
  showWebhook: "viewer",
  changeWebhook: "owner",
  deleteWebhook: "owner",
  rotateWebhook: "owner",
  testWebhook: "owner",
  listDeliveries: "viewer",
  resendDelivery: "owner",
  listEvents: "viewer",
  verify: "viewer",
  lastVerify: "viewer",
  rotateSealKey: "owner",
} as const satisfies Readonly<Record<string, OperatorRole | null>>;

/** The name of an operation, which its OpenAPI document has too. */
export type OperationId = keyof typeof leastRoles;

const ranks: Readonly<Record<OperatorRole, number>> = { viewer: 0, billing: 1, owner: 2 };

/** Whether a role may do what the other one may. */
export function mayAct(role: OperatorRole, least: OperatorRole): boolean {
  return ranks[role] >= ranks[least];
}
