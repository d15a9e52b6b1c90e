import { useEffect, useState } from "preact/hooks";
import { imageOf } from "../images";

/** An image that went with a prompt. */
export function Picture({ session, name, alt }: { session: string; name: string; alt: string }) {
  const [url, setUrl] = useState("");
  const [gone, setGone] = useState(false);
  useEffect(() => {
    let over = false;
    imageOf(session, name).then(
      (found) => !over && setUrl(found.url),
      () => !over && setGone(true),
    );
    return () => {
      over = true;
    };
  }, [session, name]);
  if (gone) return <span class="gone">An image is gone</span>;
  return url ? <img src={url} alt={alt} /> : <span class="picture-place" />;
}
