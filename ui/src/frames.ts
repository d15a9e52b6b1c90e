/** Binary frames: 1 byte of kind, 4 bytes of channel, 8 bytes of offset (big endian), then the payload. */

export const SNAPSHOT = 0;
export const OUTPUT = 1;
export const GAP = 2;
const HEAD_BYTES = 13;

export interface Frame {
  kind: number;
  channel: number;
  offset: number;
  data: Uint8Array;
}

export function frameOf(buffer: ArrayBuffer): Frame | null {
  if (buffer.byteLength < HEAD_BYTES) return null;
  const view = new DataView(buffer);
  return {
    kind: view.getUint8(0),
    channel: view.getUint32(1),
    offset: Number(view.getBigUint64(5)),
    data: new Uint8Array(buffer, HEAD_BYTES),
  };
}

/** The size of a gap that stands for output of which nobody knows how much it was. */
const UNCOUNTED = 1;

/** What is said where output is missing. */
export function gapText(lost: number): string {
  return lost === UNCOUNTED ? "some output is missing here (amount unknown)" : `${lost} bytes are no longer in the log`;
}

/** How many bytes a gap frame says are lost. */
export function lostIn(frame: Frame): number {
  if (frame.data.byteLength < 8) return 0;
  return Number(new DataView(frame.data.buffer, frame.data.byteOffset, 8).getBigUint64(0));
}
