// The less common views. They are the console's second file, which the browser loads when one of them
// is first opened (`ui/later.tsx`). The first file imports them only through this module.

export { Question } from "./conversation/question.tsx";
export { Manage } from "./manage/manage.tsx";
export { MemoryPage } from "./memory/page.tsx";
export { FurtherTab } from "./sessions/tabs.tsx";
export { ThreadView } from "./sessions/thread_view.tsx";
export { Settings } from "./settings/settings.tsx";
export { Activity } from "./understand/activity.tsx";
