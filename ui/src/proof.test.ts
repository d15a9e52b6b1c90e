import { expect, test } from "vitest";
import { browserSecret, decoded, encoded, isTheHub, pageProof } from "./proof";

const secret = Uint8Array.from({ length: 32 }, (_, at) => at);
const exchange = {
  id: "0123456789abcdef0123",
  pageNonce: "n".repeat(32),
  hubNonce: "h".repeat(32),
  origin: "http://127.0.0.1:8750",
};

test("the bytes are those of docs/protocol.md", async () => {
  expect(await isTheHub(secret, exchange, "Pv08YNK6sz-RGOFxWzqhd5zikF-6YTEcu1qZkkm-qAI")).toBe(true);
  expect(await pageProof(secret, exchange)).toBe("i8_Zw4cNHHk8PcCZnUDsRMC6SRA-aOGvMxawBp2EQqo");
  expect(encoded(await browserSecret(secret, exchange))).toBe("dfmPO92JpFHkTYh3jNtBq9YjDLuat4_YWzUruH9iHz0");
});

test("nothing else is the hub's proof", async () => {
  for (const proof of ["", "AAAA", "!", encoded(new Uint8Array(32))])
    expect(await isTheHub(secret, exchange, proof)).toBe(false);
  expect(
    await isTheHub(
      secret,
      { ...exchange, origin: "http://127.0.0.1:8751" },
      "Pv08YNK6sz-RGOFxWzqhd5zikF-6YTEcu1qZkkm-qAI",
    ),
  ).toBe(false);
});

test("base64 goes there and back", () => {
  const data = Uint8Array.from({ length: 256 }, (_, at) => at);
  expect(decoded(encoded(data))).toEqual(data);
});
