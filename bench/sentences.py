"""The statements and questions of bench/src/dataset: always the same ones, made of the same vocabulary."""

MASK = (1 << 64) - 1
WHO = [
    "Dana", "The customer", "Our team", "Alice", "The billing service", "Bob", "The backend", "Priya", "The new hire",
    "Marketing", "The nightly job", "Chen", "The mobile app", "Support", "Maria", "The data team", "Ivan", "The landlord",
    "My brother", "The search service", "Aisha", "The vendor", "The gateway", "Tom",
]
DOES = [
    "prefers", "decided to use", "is allergic to", "deploys", "moved to", "asked for", "depends on", "was late with",
    "recommends", "stopped using", "is learning", "reviews", "bought", "forgot", "plans", "postponed", "migrated", "tests",
    "dislikes", "owns", "documented", "cancelled", "renewed", "is looking for",
]
WHAT = [
    "window seats", "PostgreSQL", "peanuts", "the release", "Lisbon", "a refund", "the message queue", "the invoice",
    "dark roast coffee", "the old framework", "Portuguese", "pull requests", "a bicycle", "the password", "a holiday",
    "the interview", "the customer table", "error handling", "spicy food", "the staging cluster", "the API", "a meeting",
    "the subscription", "a larger flat", "unit tests", "green tea", "the contract", "night trains", "a piano", "the budget",
    "vegetarian menus", "the firewall", "a passport", "TypeScript", "the garden", "a marathon", "the roof", "jazz records",
    "the quarterly report", "a dentist",
]
WHEN = [
    "on Tuesdays", "since March", "before the audit", "next week", "after lunch", "in winter", "every morning",
    "because it is cheaper", "for the children", "until further notice", "with the whole family", "during the outage",
    "at the weekend", "when it rains", "for new services", "in the second quarter", "on the way home",
    "without telling anybody", "according to the policy", "as a birthday present",
]


class Random:
    """SplitMix64."""

    def __init__(self, seed):
        self.state = seed & MASK

    def next(self):
        self.state = (self.state + 0x9E37_79B9_7F4A_7C15) & MASK
        bits = self.state
        bits = ((bits ^ (bits >> 30)) * 0xBF58_476D_1CE4_E5B9) & MASK
        bits = ((bits ^ (bits >> 27)) * 0x94D0_49BB_1331_11EB) & MASK
        return bits ^ (bits >> 31)

    def pick(self, words):
        return words[self.next() % len(words)]


def statement(number):
    """A statement about something of its own."""
    dice = Random(number * 0x9E37_79B9)
    who, does, what, when = (dice.pick(words) for words in (WHO, DOES, WHAT, WHEN))
    other, reason = dice.pick(WHAT), dice.pick(WHEN)
    return f"{who} {does} {what} {when}, not {other} {reason} (note {number})"


def question(number):
    """A question that some statement answers."""
    dice = Random(~number)
    who, what, when = (dice.pick(words) for words in (WHO, WHAT, WHEN))
    return f"What did {who} say about {what} {when}?"
