/** What scripted answers are made of, in the laws for all clients. */
export const usage = {
  promptTokens: 21,
  completionTokens: 9,
  cachedTokens: 4,
  reasoningTokens: 3,
};

/** A thought that the deployment has before it answers. */
export const thought = "Two cities, so two calls.";

/** A call as a deployment makes it, with spaces that a client must not change. */
export const romeCall = { id: "call_rome", name: "weather", arguments: '{"city": "Rome"}' };

/** A second one beside it. */
export const osloCall = { id: "call_oslo", name: "weather", arguments: '{ "city":"Oslo" }' };
