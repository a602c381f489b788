/** Icons as lines, in the colour of the text. */
import type { ButtonHTMLAttributes, JSX } from "preact";

const PATHS = {
  ask: "M4 5h16v11H10l-5 4v-4H4zM8.5 9h7M8.5 12h4.5",
  send: "M12 19V5M5 12l7-7 7 7",
  stop: "M7 7h10v10H7z",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  check: "M4 12.5l5 5L20 6.5",
  up: "M7 11v9H4v-9zM7 11l4-7c1.7 0 2.5 1.2 2.2 2.7L12.6 10H19c1 0 1.8 1 1.5 2l-1.9 6.5c-.2.9-1 1.5-1.9 1.5H7",
  down: "M17 13V4h3v9zM17 13l-4 7c-1.7 0-2.5-1.2-2.2-2.7l.6-3.3H5c-1 0-1.8-1-1.5-2l1.9-6.5C5.6 4.6 6.4 4 7.3 4H17",
  again: "M20 11a8 8 0 1 0-2 6M20 5v6h-6",
  edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  link: "M10 14a4 4 0 0 0 6 .4l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6-.4l-3 3a4 4 0 0 0 6 6l1-1",
  full: "M14 4h6v6M20 4l-9 9M19 14v6H4V5h6",
  plus: "M12 5v14M5 12h14",
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "M6 6l12 12M18 6L6 18",
  trash: "M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13",
  save: "M12 4v11M7 11l5 5 5-5M5 20h14",
  settings: "M4 7h9M19 7h1M16 4.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5zM4 17h1M11 17h9M8 14.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5z",
  chevron: "M6 9l6 6 6-6",
  search: "M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14zM16 16l4.5 4.5",
  warning: "M12 4L2.5 20h19zM12 10v4.5M12 17.2v.1",
};

export type IconName = keyof typeof PATHS;

interface IconButtonProps extends Omit<ButtonHTMLAttributes, "class" | "icon"> {
  class?: string;
  icon: IconName;
  /** Shown on hover, and read aloud. */
  label: string;
  size?: number;
}

/** A button that has only an icon. */
export function IconButton({ icon, label, size = 18, class: classes = "", ...rest }: IconButtonProps): JSX.Element {
  return (
    <button type="button" class={`da-icon-button ${classes}`.trim()} aria-label={label} title={label} {...rest}>
      <Icon name={icon} size={size} />
    </button>
  );
}

export function Icon({ name, size = 18 }: { name: IconName; size?: number }): JSX.Element {
  return (
    <svg class="da-icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
