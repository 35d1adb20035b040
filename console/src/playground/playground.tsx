import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../components/button.tsx";
import { CodeLines } from "../components/code-lines.tsx";
import { Choice, Field } from "../components/field.tsx";
import { Figure, Figures, Section } from "../components/page.tsx";
import { Badge } from "../components/text.tsx";
import { countText, durationText, formatNames } from "../words.ts";
import { type FormatName, bodyOf, type Question, readTools } from "./ask.ts";
import { CostFigure, CostWords, useReceiptOf } from "./cost.tsx";
import { linesOf } from "./lines.ts";
import { type Asked, useQuestion } from "./use-question.ts";

const formats = (["chat-completions", "responses", "messages"] as const).map(
  (format) => [format, formatNames[format]] as const,
);

const first: Omit<Question, "format"> = {
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

/** Asks the service as a caller does, and shows the answer beside the frames that it came in; of all formats side by side. */
export function Playground({
  keyField,
  linesHint,
  secret,
  url,
}: {
  /** The key that is sent; "": none yet. */
  readonly secret: string;
  /** Where the key is given, above the question. */
  readonly keyField: ComponentChildren;
  /** Where the lines to copy go. */
  readonly url: string;
  readonly linesHint?: string;
}) {
  const [question, setQuestion] = useState(first);
  const [wanted, setWanted] = useState<FormatName | "all">("chat-completions");
  const of = {
    "chat-completions": useQuestion(),
    responses: useQuestion(),
    messages: useQuestion(),
  };
  const tools = readTools(question.tools);
  const shown = formats.filter(([format]) => wanted === "all" || format === wanted);
  const asking = shown.some(([format]) => of[format].asked?.state === "asking");
  return (
    <div class={wanted === "all" ? "playground playground-all" : "playground"}>
      <form
        class="stack ask"
        aria-label="Question"
        onSubmit={(event) => {
          event.preventDefault();
          if (typeof tools === "string" || secret === "") return;
          for (const [format] of shown) of[format].send({ ...question, format }, tools, secret);
        }}
      >
        {keyField}
        <Choice<FormatName | "all">
          label="Format"
          value={wanted}
          onChange={setWanted}
          choices={[...formats, ["all", "All three, side by side"]]}
        />
        <QuestionFields
          question={question}
          toolsError={typeof tools === "string" ? `This ${tools}.` : null}
          onChange={(change) => setQuestion({ ...question, ...change })}
        />
        <div class="actions">
          <Button type="submit" kind="main" busy={asking} disabled={secret === ""}>
            Send
          </Button>
          {asking && (
            <Button onClick={() => shown.forEach(([format]) => of[format].cancel())}>Cancel</Button>
          )}
          {secret === "" && <span class="hint">A key is needed first, above.</span>}
        </div>
      </form>
      <div class="answer">
        <div class="answers">
          {shown.map(([format, title]) => (
            <AnswerView
              key={format}
              title={wanted === "all" ? title : "Answer"}
              asked={of[format].asked}
            />
          ))}
        </div>
        {typeof tools !== "string" && (
          <Section title="The same request as code" hint={linesHint}>
            {shown.flatMap(([format, title]) =>
              linesOf({
                format,
                body: bodyOf({ ...question, format }, tools),
                url,
                key: secret,
              }).map((lines) => (
                <CodeLines
                  key={`${format} ${lines.title}`}
                  text={lines.text}
                  title={wanted === "all" ? `${title}: ${lines.title}` : lines.title}
                />
              )),
            )}
          </Section>
        )}
      </div>
    </div>
  );
}

/** What is asked, in whatever format. */
function QuestionFields({
  onChange,
  question,
  toolsError,
}: {
  readonly question: typeof first;
  readonly toolsError: string | null;
  readonly onChange: (change: Partial<typeof first>) => void;
}) {
  return (
    <>
      <Field
        label="System"
        rows={2}
        value={question.system}
        onInput={(system) => onChange({ system })}
      />
      <Field
        label="Message"
        rows={4}
        required
        value={question.text}
        onInput={(text) => onChange({ text })}
      />
      <div class="side-by-side">
        <Field
          label="Output tokens at most"
          inputMode="numeric"
          value={question.outputTokensMax}
          onInput={(outputTokensMax) => onChange({ outputTokensMax })}
        />
        <label class="check">
          <input
            type="checkbox"
            checked={question.streamed}
            onChange={({ currentTarget: { checked } }) => onChange({ streamed: checked })}
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
          error={toolsError}
          onInput={(tools) => onChange({ tools })}
        />
        <Button kind="quiet" onClick={() => onChange({ tools: exampleTools })}>
          An example
        </Button>
      </details>
    </>
  );
}

const tones = { asking: "live", done: "good", cancelled: "warn", failed: "bad" } as const;

function AnswerView({ asked, title }: { readonly asked: Asked | null; readonly title: string }) {
  const receipt = useReceiptOf(asked?.requestId ?? null);
  if (asked === null)
    return (
      <div class="state">
        <h2>{title === "Answer" ? "The answer comes here" : title}</h2>
        <p>Its text, reasoning and tool calls, how long it took, what it cost, and each frame.</p>
      </div>
    );
  const { answer, state } = asked;
  return (
    <Section
      title={title}
      actions={
        <span role="status">
          <Badge tone={tones[state]}>{state}</Badge>
        </span>
      }
    >
      <Figures>
        <TimeFigures asked={asked} />
        <CostFigure receipt={receipt} />
      </Figures>
      {receipt !== null && <CostWords receipt={receipt} />}
      <div class="answer-parts">
        <div>
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
        </div>
        <Frames frames={asked.frames} />
      </div>
    </Section>
  );
}

function TimeFigures({ asked: { answer, firstMs, totalMs } }: { readonly asked: Asked }) {
  const streamedMs = firstMs === null || totalMs === null ? 0 : totalMs - firstMs;
  return (
    <>
      <Figure name="First output">{firstMs === null ? "–" : durationText(firstMs)}</Figure>
      <Figure name="In all">{totalMs === null ? "–" : durationText(totalMs)}</Figure>
      <Figure name="Tokens in / out">
        {answer.outputTokens === null
          ? "–"
          : `${countText(answer.inputTokens ?? 0)} / ${countText(answer.outputTokens)}`}
      </Figure>
      <Figure name="Tokens a second">
        {answer.outputTokens === null || streamedMs < 1
          ? "–"
          : countText(Math.round((answer.outputTokens / streamedMs) * 1_000))}
      </Figure>
    </>
  );
}

/** The pieces that the answer came in, each with its time since the request was sent. */
function Frames({ frames }: Pick<Asked, "frames">) {
  return (
    <details class="frames" open>
      <summary>
        {frames.length === 1
          ? "One frame, as it came"
          : `${countText(frames.length)} frames, as they came`}
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
  );
}
