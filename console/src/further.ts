// The views that nobody needs to read a conversation and to answer: the second file of the console,
// which the browser loads when one of these views is opened (`ui/later.tsx`). The first file
// imports nothing that stands here but by this module.

export { Question } from "./conversation/question.tsx";
export { Manage } from "./manage/manage.tsx";
export { MemoryPage } from "./memory/page.tsx";
export { FurtherTab } from "./sessions/tabs.tsx";
export { ThreadView } from "./sessions/thread_view.tsx";
export { Settings } from "./settings/settings.tsx";
export { Activity } from "./understand/activity.tsx";
