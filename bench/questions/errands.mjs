// What people tell an agent by the way, while they ask for something else, and what both say
// around it. {a}, {b} and {c} are drawn from the nouns of a subject.

export default {
  subjects: {
    home: "closet,shelf,drawer,carpet,paint,curtain,vacuum,storage box,laundry,sink,lamp,wallpaper,mattress,hallway,balcony,toolbox,clutter,cleaning routine",
    sport:
      "training plan,running shoe,stretching,racket,heart rate,warm-up,marathon,swimming,coach,yoga mat,recovery day,cycling route,gym,muscle,hydration,half marathon",
    food: "recipe,sourdough,slow cooker,meal plan,spice,vegetable,dessert,marinade,grocery list,oven,dinner party,breakfast,smoothie,knife,pasta,salad",
    travel:
      "itinerary,flight,hostel,luggage,museum,train pass,beach,hiking trail,guidebook,passport,neighbourhood,day trip,budget,souvenir,airport,street food",
    work: "presentation,meeting,deadline,spreadsheet,team,client,report,promotion,interview,email,project plan,feedback,marketing campaign,budget review,remote work,conference",
    music:
      "guitar,concert,playlist,chord,practice routine,band,vinyl record,headphones,singing lesson,festival,drum,piano piece,amplifier,songwriting,melody,rehearsal",
    garden:
      "tomato plant,compost,soil,herb,seedling,watering,pruning,greenhouse,raised bed,fertilizer,bee,flower pot,lawn,rose bush,vegetable patch,pest",
    money:
      "budget,savings account,credit card,mortgage,insurance,subscription,tax return,investment,grocery bill,emergency fund,rent,electric bill,loan,pension,expense,bank",
    books:
      "novel,book club,library card,chapter,author,audiobook,reading list,mystery,memoir,short story,bookshelf,e-reader,poem,plot,character,bookstore",
    family:
      "birthday party,gift,school,babysitter,photo album,reunion,bedtime story,playground,grandparent,picnic,homework,wedding,allowance,holiday card,board game,movie night",
  },
  asks: [
    "I'm trying to get a handle on my {a} and keep running into problems with the {b}. Could you walk me through how people usually approach it?",
    "Can you recommend a good way to combine {a} and {b} without spending too much time on it?",
    "What should I consider before I make a decision about the {a}? I've read conflicting things about the {b}, too.",
    "I'd like some ideas for the {a}. I prefer something simple, because the {b} already takes most of my weekends.",
    "Do you have any tips for the {a}? I want to start this week and would like to have the {b} ready as well.",
    "Could you compare two or three options for a {a}, and tell me how each one affects the {b}?",
    "I feel overwhelmed by everything there is to know about {a}. Where would you start, and does the {b} matter?",
    "How often should I take care of the {a}? A friend says once a month, but that seems too rare given the {b}.",
  ],
  follows: [
    "That's helpful, thanks! I think I'll begin with the {a}. What would the next step be after that?",
    "Great suggestions. I hadn't considered the {a} at all. Can you tell me more about that?",
    "I like the idea with the {b}. How long does something like that usually take, and what does it cost?",
    "Okay, that makes sense. What about the {c}? I'm not sure how it fits in.",
    "Thanks for the detailed answer. Could you put the main points about the {a} into a short list?",
    "I'm not convinced about the {b}. Is there an alternative for somebody who has little time?",
    "Sounds good. Any common mistakes with the {a} that I should avoid?",
    "Perfect. One more thing: would you do the {c} before or after the {a}?",
  ],
  /** A list item of an answer. */
  items: [
    "**{A}**: Start with the {b}, because it determines how much room there is for the {c} later on.",
    "**Plan the {b} ahead**: A short list for the {a} saves time and keeps the {c} under control.",
    "**Check your {a}**: If the {b} is older than a few years, it may be cheaper to replace it together with the {c}.",
    "**Set a routine**: Spend ten minutes on the {a} every other day instead of a whole afternoon on the {b}.",
    "**Ask around**: Friends, neighbours and online communities often know a reliable source for a {b}.",
    "**Keep the {c} simple**: Many people overcomplicate the {a} and lose interest before they see results.",
    "**Measure first**: Write down what you need from the {a}, then compare at least three offers for the {b}.",
    "**Mix it up**: Alternate between the {a} and the {c}, so that neither of them becomes a chore.",
    "**Think long-term**: A good {b} lasts for years, and it makes the {a} easier to maintain.",
    "**Be patient**: It usually takes a few weeks until changes to the {a} show an effect on the {c}.",
    "**Use what you have**: Before you buy a new {c}, see whether the {b} can be adapted to your needs.",
    "**Track progress**: A simple notebook or an app helps you to see how the {a} develops over time.",
  ],
  starts: [
    "Great question! When it comes to the {a}, there are several things to consider:",
    "I'd be happy to help with that! Here are some suggestions for the {a} and the {b}:",
    "Congratulations on getting started! Here is an overview of what matters for the {a}:",
    "It depends on your situation, but these guidelines usually work well for the {a}:",
    "Absolutely! Let's break it down, beginning with the {b}:",
  ],
  ends: [
    "Remember that everybody's situation is different, so adjust the {a} to your own needs. Is there anything specific about the {b} that you would like to explore?",
    "I hope these suggestions help you with the {a}! Let me know if you have further questions about the {c}.",
    "With a bit of planning, the {a} will soon feel natural. Would you like me to go into more detail on any of these points?",
  ],
  ways: [
    "By the way, ",
    "Speaking of which, ",
    "Also, ",
    "I was just thinking about this because ",
    "For context, ",
    "",
    "",
    "",
  ],
  /** What is told by the way: `[kind, told, asked]`, or with several tellings. */
  told: [
    ["name", "my {kin} {who} gave me a {thing} that I still have to unpack.", "Who gave me the {thing}?"],
    ["name", "I went to {city} with my {kin} {who} for a long weekend.", "Which relative did I go to {city} with?"],
    [
      "name",
      "I just finished {book} and I'm looking for the next one.",
      "What is the title of the book that I finished recently?",
    ],
    ["name", "our {pet} {who} chewed on it again, so it has to be sturdy.", "What is the name of my {pet}?"],
    ["name", "I bought a new {thing} at the shop of {who} downtown.", "Where did I buy my new {thing}?"],
    [
      "name",
      "I've been taking {hobby} classes with {who}, which is a lot of fun.",
      "Who teaches the {hobby} classes that I take?",
    ],
    [
      "number",
      "I got a {thing} for {n} euros, so there isn't much left this month.",
      "How much did I pay for the {thing}?",
    ],
    [
      "number",
      "my commute takes {n} minutes each way, so I have time to listen to something.",
      "How long is my daily commute to work?",
    ],
    [
      "number",
      "I have {n} postcards from {city} that I inherited from my {kin}.",
      "How many postcards from {city} do I have?",
    ],
    [
      "number",
      "I set a personal best of {n} minutes at the charity run in {city}.",
      "What was my personal best time in the charity run?",
    ],
    ["date", "my {event} is on {date} and I want everything to be ready by then.", "When is my {event}?"],
    ["date", "I've been doing {hobby} since {date}, so I'm still a beginner.", "When did I start with {hobby}?"],
    ["date", "I visited {city} on {date}, right before the rain started.", "On what date did I visit {city}?"],
    ["words", "I worked as a {job} before, so I know a bit about it.", "What was my previous occupation?"],
    [
      "words",
      "I repainted the bedroom in a light shade of gray and love it.",
      "What colour did I repaint my bedroom walls?",
    ],
    ["words", "I graduated in {hobby} studies in {city}, of all things.", "What degree did I graduate with?"],
    [
      "words",
      "I redeemed a coupon on {thing} polish at the supermarket last Sunday.",
      "Where did I redeem the coupon on {thing} polish?",
    ],
    [
      "words",
      "I keep my old {thing} under the bed, because there's no other place.",
      "Where do I keep my old {thing}?",
    ],
    [
      "other",
      "I get {illness} whenever I sit for too long.",
      "Which health problem should be considered when I plan a long flight?",
    ],
    [
      "other",
      "I've always had a soft spot for {hobby} and spend most of my free time on it.",
      "Can you suggest something that I would enjoy at the weekend?",
    ],
    [
      "other",
      "I mostly cook {food} and dishes like that at home.",
      "Any suggestions for what to make for dinner tonight?",
    ],
  ],
  updated: [
    [
      "I've read {n} pages of {book} so far.",
      "I'm on page {m} of {book} now.",
      "How many pages of {book} have I read?",
    ],
    [
      "my {kin} {who} lives in {city} at the moment.",
      "my {kin} {who} just moved to {city2}.",
      "Where does my {kin} {who} live?",
    ],
    [
      "I go to {hobby} every {day}.",
      "I've switched my {hobby} to {day2}, which suits me better.",
      "On which day of the week do I go to {hobby}?",
    ],
    [
      "I have {n} followers on my page about {hobby}.",
      "my page about {hobby} has reached {m} followers.",
      "How many followers does my page about {hobby} have?",
    ],
  ],
  several: [
    [
      [
        "I bought a {thing} last week.",
        "I ordered a {thing2} which arrives tomorrow.",
        "I picked up a {thing3} at a yard sale.",
      ],
      "How many items for my home did I buy or order?",
    ],
    [
      ["I flew to {city} in spring.", "I was in {city2} for a conference.", "I just got back from {city3}."],
      "How many cities did I travel to this year?",
    ],
    [
      ["I paid {n} euros for {hobby} gear.", "I spent {m} euros on a {hobby2} course."],
      "How much money did I spend on my hobbies in total?",
    ],
    [
      ["I attended the {event} of my {kin} last month.", "I was at the {event2} of {who} on Saturday."],
      "How many celebrations did I attend lately?",
    ],
    [
      ["I started {hobby} on {date}.", "I signed up for a {hobby} tournament on {date2}."],
      "How long had I been doing {hobby} when I signed up for the tournament?",
    ],
    [
      ["I baked {food} for my {kin}'s birthday.", "I tried out a new recipe for {food2} on {day}."],
      "Which dishes did I make in the past weeks?",
    ],
    [
      ["I met {who} at the farmers market.", "I had coffee with {who2} after yoga."],
      "Which friends did I meet first, {who} or {who2}?",
    ],
  ],
};
