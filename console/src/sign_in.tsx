// Asks for the secret or a token, once for each tab.

import { useState } from "preact/hooks";
import { Button, Field } from "./ui/basics.tsx";
import { credential, signIn } from "./connection.ts";

export function SignIn() {
  const [text, setText] = useState("");
  const wasRefused = credential.value !== null;
  return (
    <main id="main" class="sign-in" tabIndex={-1}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim() !== "") signIn(text.trim());
        }}
      >
        <img src="/icon.svg" alt="" width="48" height="48" />
        <h1>Session Agent</h1>
        <p>Sign in with the Worker's secret or with a token.</p>
        {wasRefused && (
          <p class="problem" role="alert">
            The secret or token was not accepted.
          </p>
        )}
        <Field
          label="Secret or token"
          type="password"
          value={text}
          onInput={setText}
          required
          autofocus
          hint="Stored in this tab only, until you close it."
        />
        <Button type="submit" kind="main" icon="key">
          Open the console
        </Button>
      </form>
    </main>
  );
}
