export function SignIn() {
  return (
    <main class="sign-in">
      <img src="/favicon.svg" alt="" width="56" height="56" />
      <h1>Hitchpost</h1>
      <p>This page is not signed in.</p>
      <p>
        <code>hitch up</code> prints a link
      </p>
      <p class="quiet">It works once, within a minute.</p>
    </main>
  );
}
