/** What tells a person of a session while they look elsewhere. */
export function NotificationSettings() {
  return null;
}
