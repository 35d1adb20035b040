/** What is opened when it is first wanted; where that fails, the next who wants it tries again. */
export function openOnce<Opened extends AsyncDisposable>(
  open: () => Promise<Opened>,
): AsyncDisposable & { open(): Promise<Opened> } {
  let opened: Promise<Opened> | null = null;
  return {
    open() {
      const mine = (opened ??= open());
      mine.catch(() => {
        if (opened === mine) opened = null;
      });
      return mine;
    },
    async [Symbol.asyncDispose]() {
      await opened?.then((one) => one[Symbol.asyncDispose](), ignore);
    },
  };
}

function ignore(): void {}
