/** The mark: two streams become one. */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" width="22" height="22" aria-hidden="true">
      <path
        d="M7 3v6c0 7 9 5 9 12v8M25 3v6c0 7-9 5-9 12"
        fill="none"
        stroke="currentColor"
        stroke-width="3.5"
        stroke-linecap="round"
      />
    </svg>
  );
}
