import { delta, finish, openGate, type Step } from "../doubles/scripted-deployment.ts";
import { formats, type TestService } from "./start-service.ts";

const [chat] = formats;

/** Begins streams that last until the gate opens, and waits until all have reached the deployment. */
export async function occupy(
  service: TestService,
  keys: readonly string[],
): Promise<{ readonly answers: readonly Promise<string>[]; open(): void }> {
  const gate = openGate();
  const steps: readonly Step[] = [delta({ content: "held" }), gate.step, finish("stop")];
  const first = service.deployment.requests.length;
  const answers: Promise<string>[] = [];
  for (const key of keys) {
    service.deployment.answerNext(...steps);
    const response = service.post(chat.path, { ...chat.body, stream: true }, { key });
    answers.push(response.then((answer) => answer.text()));
  }
  await service.deployment.request(first + keys.length - 1);
  return { answers, open: () => gate.open() };
}
