// src/parts.tsx
type Decide = (answer: { id: string; approved: boolean }) => unknown;
type Part = { type: string; [field: string]: any };

export function Messages({ messages, decide }: { messages: { id: string; role: string; parts: Part[] }[]; decide: Decide }) {
  return messages.map(({ id, role, parts }) => (
    <article key={id} className={role}>
      {parts.map((part, n) => <OnePart key={n} part={part} decide={decide} />)}
    </article>
  ));
}

function OnePart({ part, decide }: { part: Part; decide: Decide }) {
  if (part.type === "text") return <p>{part.text}</p>;
  if (!part.type.startsWith("tool-")) return null;
  return (
    <section>
      <code>{part.type.slice("tool-".length)} {JSON.stringify(part.input)}</code>
      {part.state === "approval-requested" && (
        <>
          <button onClick={() => decide({ id: part.approval.id, approved: true })}>Allow</button>
          <button onClick={() => decide({ id: part.approval.id, approved: false })}>Refuse</button>
        </>
      )}
      {part.errorText && <p role="alert">{part.errorText}</p>}
    </section>
  );
}
