// A reason to stop that is already a sentence for the person at the keyboard.

export class Stop extends Error {
  name = "Stop";
}
