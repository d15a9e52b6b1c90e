import { expect, test, vi } from "vitest";

const heard = new Map<string, () => void>();
const page = {
  visibilityState: "visible",
  addEventListener: (name: string, listener: () => void) => heard.set(name, listener),
};
vi.stubGlobal("document", page);
vi.stubGlobal("addEventListener", () => undefined);
vi.stubGlobal("localStorage", { getItem: () => null });
vi.stubGlobal("location", { hash: "", origin: "https://hub.example.org" });
const answers: Response[] = [];
vi.stubGlobal("fetch", async () => answers.shift());
const { entered, leave, onSignIn } = await import("./signin");

const look = () => heard.get("visibilitychange")!();
const unknown = () => Response.json({ error: { code: "not_signed_in", message: "no", hint: "" } }, { status: 401 });

test("a page that a proxy has not let in tries again when somebody looks, also after a reload", async () => {
  const woken: string[] = [];
  onSignIn(() => woken.push("woken"));
  answers.push(unknown());
  await expect(entered()).rejects.toMatchObject({ code: "not_signed_in" });
  page.visibilityState = "hidden";
  look();
  expect(woken).toEqual([]);
  page.visibilityState = "visible";
  look();
  expect(woken).toEqual(["woken"]);
  answers.push(Response.json({ id: "anna", role: "member" }));
  expect(await entered()).toMatchObject({ id: "anna" });
  leave();
  answers.push(unknown());
  await expect(entered()).rejects.toMatchObject({ code: "not_signed_in" });
  look();
  expect(woken).toEqual(["woken", "woken"]);
});
