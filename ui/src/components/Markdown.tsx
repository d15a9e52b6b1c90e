import { marked, type Token, type Tokens } from "marked";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";

/** An agent's text. It is taken apart by a parser and put together as elements: no HTML of the agent's is ever one. */
export function Markdown({ text }: { text: string }) {
  // a chat is drawn again with each part that comes: what did not change is neither read nor compared again
  const read = useMemo(() => blocks(marked.lexer(text, { gfm: true, breaks: true })), [text]);
  return <div class="markdown">{read}</div>;
}

const blocks = (tokens: readonly Token[]): ComponentChildren =>
  tokens.map((token, at) => <Block key={at} token={token} />);

function Block({ token }: { token: Token }) {
  switch (token.type) {
    case "heading":
      return <p class="heading">{inline(token.tokens ?? [])}</p>;
    case "paragraph":
    case "text":
      return token.tokens ? <p>{inline(token.tokens)}</p> : <p>{token.raw}</p>;
    case "code":
      return (
        <pre>
          <code>{(token as Tokens.Code).text}</code>
        </pre>
      );
    case "blockquote":
      return <blockquote>{blocks(token.tokens ?? [])}</blockquote>;
    case "list": {
      const list = token as Tokens.List;
      const items = list.items.map((item, at) => <li key={at}>{blocks(item.tokens)}</li>);
      return list.ordered ? <ol start={Number(list.start) || 1}>{items}</ol> : <ul>{items}</ul>;
    }
    case "table": {
      const table = token as Tokens.Table;
      return (
        <table>
          <thead>
            <tr>
              {table.header.map((cell, at) => (
                <th key={at}>{inline(cell.tokens)}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {table.rows.map((row, at) => (
              <tr key={at}>
                {row.map((cell, place) => (
                  <td key={place}>{inline(cell.tokens)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      );
    }
    case "hr":
      return <hr />;
    case "space":
      return null;
    default:
      return <p>{token.raw}</p>;
  }
}

const inline = (tokens: readonly Token[]): ComponentChildren =>
  tokens.map((token, at) => <Inline key={at} token={token} />);

/** A link is its text and its address: an agent's words lead nobody anywhere with one click. */
function Inline({ token }: { token: Token }): ComponentChildren {
  switch (token.type) {
    case "strong":
      return <strong>{inline(token.tokens ?? [])}</strong>;
    case "em":
      return <em>{inline(token.tokens ?? [])}</em>;
    case "del":
      return <del>{inline(token.tokens ?? [])}</del>;
    case "codespan":
      return <code>{(token as Tokens.Codespan).text}</code>;
    case "br":
      return <br />;
    case "link": {
      const { href, text } = token as Tokens.Link;
      return href === text ? <span>{text}</span> : <span>{`${text} (${href})`}</span>;
    }
    case "text": {
      const { text, tokens } = token as Tokens.Text;
      return tokens ? inline(tokens) : text;
    }
    case "escape":
      return (token as Tokens.Escape).text;
    default:
      return token.raw;
  }
}
