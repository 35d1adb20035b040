import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../components/button.tsx";
import { CodeLines } from "../components/code-lines.tsx";
import { Choice, Field } from "../components/field.tsx";
import { Figure, Figures, Section } from "../components/page.tsx";
import { Badge } from "../components/text.tsx";
import { countText, durationText } from "../words.ts";
import { type FormatName, bodyOf, type Question, readTools } from "./ask.ts";
import { Cost } from "./cost.tsx";
import { linesOf } from "./lines.ts";
import { type Asked, useQuestion } from "./use-question.ts";

const first: Question = {
  format: "chat-completions",
  system: "",
  text: "Say hello in three languages.",
  streamed: true,
  outputTokensMax: "256",
  tools: "",
};

const exampleTools = `[
  {
    "name": "get_weather",
    "description": "The weather of a place.",
    "parameters": {
      "type": "object",
      "properties": { "place": { "type": "string" } },
      "required": ["place"]
    }
  }
]`;

/** Asks the service as a caller does, and shows the answer beside the frames that it came in. */
export function Playground({
  keyField,
  secret,
  url,
}: {
  /** The key that is sent; "": none yet. */
  readonly secret: string;
  /** Where the key is given, above the question. */
  readonly keyField: ComponentChildren;
  /** Where callers come, for the lines. */
  readonly url: string;
}) {
  const [question, setQuestion] = useState(first);
  const { asked, cancel, send } = useQuestion();
  const tools = readTools(question.tools);
  const asking = asked?.state === "asking";
  const set = (change: Partial<Question>): void => setQuestion({ ...question, ...change });
  return (
    <div class="playground">
      <form
        class="stack ask"
        aria-label="Question"
        onSubmit={(event) => {
          event.preventDefault();
          if (typeof tools !== "string" && secret !== "") send(question, tools, secret);
        }}
      >
        {keyField}
        <Choice<FormatName>
          label="Format"
          value={question.format}
          onChange={(format) => set({ format })}
          choices={[
            ["chat-completions", "Chat Completions"],
            ["responses", "Responses"],
            ["messages", "Messages"],
          ]}
        />
        <Field
          label="System"
          rows={2}
          value={question.system}
          onInput={(system) => set({ system })}
        />
        <Field
          label="Message"
          rows={4}
          required
          value={question.text}
          onInput={(text) => set({ text })}
        />
        <div class="side-by-side">
          <Field
            label="Output tokens at most"
            inputMode="numeric"
            value={question.outputTokensMax}
            onInput={(outputTokensMax) => set({ outputTokensMax })}
          />
          <label class="check">
            <input
              type="checkbox"
              checked={question.streamed}
              onChange={({ currentTarget: { checked } }) => set({ streamed: checked })}
            />
            Streamed
          </label>
        </div>
        <details>
          <summary>Tools</summary>
          <Field
            label="A JSON list of name, description, parameters"
            rows={8}
            value={question.tools}
            error={typeof tools === "string" ? `This ${tools}.` : null}
            onInput={(text) => set({ tools: text })}
          />
          <Button kind="quiet" onClick={() => set({ tools: exampleTools })}>
            An example
          </Button>
        </details>
        <div class="actions">
          <Button type="submit" kind="main" busy={asking} disabled={secret === ""}>
            Send
          </Button>
          {asking && <Button onClick={cancel}>Cancel</Button>}
          {secret === "" && <span class="hint">A key is needed first.</span>}
        </div>
      </form>
      <div class="answer">
        <AnswerView asked={asked} />
        {typeof tools !== "string" && (
          <Section title="The same from elsewhere">
            {linesOf({
              format: question.format,
              body: bodyOf(question, tools),
              url,
              key: secret,
            }).map((lines) => (
              <CodeLines key={lines.title} {...lines} />
            ))}
          </Section>
        )}
      </div>
    </div>
  );
}

const tones = { asking: "live", done: "good", cancelled: "warn", failed: "bad" } as const;

function AnswerView({ asked }: { readonly asked: Asked | null }) {
  if (asked === null)
    return (
      <div class="state">
        <h2>The answer comes here</h2>
        <p>With its reasoning apart, its tool calls, its times, what it cost, and each frame.</p>
      </div>
    );
  const { answer, firstMs, frames, requestId, state, totalMs } = asked;
  const streamedMs = firstMs === null || totalMs === null ? 0 : totalMs - firstMs;
  return (
    <>
      <Section
        title="Answer"
        actions={
          <span role="status">
            <Badge tone={tones[state]}>{state}</Badge>
          </span>
        }
      >
        <Figures>
          <Figure name="First output">{firstMs === null ? "–" : durationText(firstMs)}</Figure>
          <Figure name="In all">{totalMs === null ? "–" : durationText(totalMs)}</Figure>
          <Figure name="Tokens in, out">
            {answer.outputTokens === null
              ? "–"
              : `${countText(answer.inputTokens ?? 0)}, ${countText(answer.outputTokens)}`}
          </Figure>
          <Figure name="Tokens a second">
            {answer.outputTokens === null || streamedMs < 1
              ? "–"
              : countText(Math.round((answer.outputTokens / streamedMs) * 1_000))}
          </Figure>
          <Figure name="Cost">
            {state !== "asking" && requestId !== null ? (
              <Cost key={requestId} id={requestId} />
            ) : (
              "–"
            )}
          </Figure>
        </Figures>
        {answer.error !== null && (
          <p class="notice notice-bad" role="alert">
            {answer.error}
          </p>
        )}
        {answer.reasoning !== "" && (
          <details class="reasoning">
            <summary>Reasoning</summary>
            <p class="said">{answer.reasoning}</p>
          </details>
        )}
        {answer.text !== "" && <p class="said">{answer.text}</p>}
        {answer.calls.map(({ arguments: given, name }, index) => (
          <p key={index} class="call">
            <span class="quiet">calls</span> <code>{name}</code> <code>{given}</code>
          </p>
        ))}
        {answer.finish !== null && <p class="hint">Ended: {answer.finish}</p>}
      </Section>
      <details class="frames">
        <summary>
          {frames.length === 1 ? "One frame" : `${countText(frames.length)} frames`}, as they came
        </summary>
        <ol tabIndex={0} aria-label="Frames">
          {frames.map(({ atMs, text }, index) => (
            <li key={index}>
              <span class="number quiet">{Math.round(atMs)} ms</span>
              <code>{text}</code>
            </li>
          ))}
        </ol>
      </details>
    </>
  );
}
