// What Milky 1.3 adds to the schemas of 1.2, the newest that are published, as far as it concerns us.
import { z } from "zod";
import { zUin } from "@saltify/milky-types";

export const events = {
  group_disband: z.object({
    event_type: z.literal("group_disband"),
    time: z.number().int().nonnegative(),
    self_id: zUin,
    data: z.object({ group_id: zUin, operator_id: zUin }),
  }),
};

export const segments = {
  markdown: z.object({ type: z.literal("markdown"), data: z.object({ content: z.string() }) }),
};

export const apis = {
  persist_group_file: {
    requestSchema: z.object({ group_id: zUin, file_id: z.string() }),
    responseSchema: null,
  },
};
