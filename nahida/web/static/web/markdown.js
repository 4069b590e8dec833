// Markdown to nodes. Raw HTML stays text, images become links (a picture's address can carry words out), links leave in a new tab.

import markdownit from "./vendor/markdown-it.js";

const CJK = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\u3000-\u303f\uff00-\uffef]/u;
const LINK = /^(https?:\/\/|mailto:)/i;

const md = markdownit({ html: false, linkify: true, breaks: true });

md.validateLink = (url) => LINK.test(url.trim());

// CommonMark asks for spaces around **, which Chinese and Japanese do not write.
md.inline.State = class extends md.inline.State {
  scanDelims(start, canSplitWord) {
    const run = super.scanDelims(start, canSplitWord);
    const before = this.src.slice(Math.max(0, start - 2), start).match(/.$/u)?.[0] ?? " ";
    const after = this.src.slice(start + run.length).match(/^./su)?.[0] ?? " ";
    if (canSplitWord && (CJK.test(before) || CJK.test(after))) {
      run.can_open ||= /\S/.test(after);
      run.can_close ||= /\S/.test(before);
    }
    return run;
  }
};

const escape = md.utils.escapeHtml;
const rules = md.renderer.rules;
const away = 'target="_blank" rel="noopener noreferrer nofollow"';

rules.link_open = (tokens, at) => `<a href="${escape(tokens[at].attrGet("href"))}" ${away}>`;

rules.image = (tokens, at) => {
  const source = tokens[at].attrGet("src");
  return `<a href="${escape(source)}" ${away}>${escape(tokens[at].content || source)}</a>`;
};

rules.fence = rules.code_block = (tokens, at) => {
  const language = tokens[at].info.trim().split(/\s+/)[0];
  return (
    `<figure class="code"><figcaption><span>${escape(language || "text")}</span>` +
    `<button type="button" data-copy>Copy</button></figcaption>` +
    `<pre><code>${escape(tokens[at].content)}</code></pre></figure>`
  );
};

rules.table_open = () => '<div class="table"><table>';
rules.table_close = () => "</table></div>";
for (const cell of ["th", "td"]) {
  // The page's policy lets no style attribute in.
  rules[`${cell}_open`] = (tokens, at) => {
    const side = /(right|center)/.exec(tokens[at].attrGet("style") ?? "")?.[0];
    return side ? `<${cell} class="${side}">` : `<${cell}>`;
  };
}

export function render(text) {
  const template = document.createElement("template");
  template.innerHTML = md.render(text);
  return template.content;
}
