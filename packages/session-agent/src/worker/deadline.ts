// A hook's time is bounded, as that of a call to another Worker is.

/** `work`, or an error after this many milliseconds. The timer does not outlive the work. */
export async function within<Answer>(
  ms: number,
  what: string,
  work: () => Answer | Promise<Answer>,
): Promise<Awaited<Answer>> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`\`${what}\` took longer than ${ms / 1000} seconds`)), ms);
  });
  try {
    return await Promise.race([(async () => await work())(), late]);
  } finally {
    clearTimeout(timer);
  }
}
