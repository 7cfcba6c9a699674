"""The words of the Garden World, and which of them belong together by their kind."""

MAX_LENGTH = 64
"""The most tokens that a document has after <bos>, <eos> counted."""

PAD, BOS, EOS = "<pad>", "<bos>", "<eos>"
POSSESSIVES = ("his", "her", "its")

MALE = ("boy", "man", "uncle", "father", "king")
FEMALE = ("girl", "woman", "aunt", "mother", "queen")
ANIMALS = ("dog", "cat", "hen", "rabbit", "bird", "mouse", "fox", "goat")
NOUNS = {
    "being": MALE + FEMALE + ANIMALS,
    "plant": ("rose", "tulip", "lily", "daisy", "bean", "carrot", "apple", "fern", "oak", "pumpkin"),
    "thing": ("basket", "spade", "bucket", "rake", "hat", "ball", "stone", "rope", "broom", "lamp"),
    "place": ("pond", "wall", "gate", "fence", "shed", "bench", "tree", "path", "well", "hedge"),
}
OBJECTS = {  # the verbs, and the kinds of noun that each takes, in order
    **dict.fromkeys(("waters", "plants", "picks", "smells"), ("plant",)),
    **dict.fromkeys(("carries", "drops", "finds", "hides"), ("thing",)),
    **dict.fromkeys(("sees", "follows", "helps", "calls"), ("being",)),
    **dict.fromkeys(("gives", "shows"), ("being", "thing")),
    **dict.fromkeys(("rests", "sleeps", "waits", "sings"), ()),
}
ADJECTIVES = ("old", "young", "small", "big", "red", "blue", "yellow", "white", "green")
PREPOSITIONS = ("near", "behind", "under", "by")
CONJUNCTIONS = ("when", "while", "because")
PRONOUN_OF = {
    noun: pronoun for pronoun, nouns in zip(POSSESSIVES, (MALE, FEMALE, ANIMALS), strict=True) for noun in nouns
}


def vocabulary(*between: str) -> tuple[str, ...]:
    """All words in the order of their ids; `between` are those of one grammar alone."""
    return (
        *(PAD, BOS, EOS, ".", "the", *POSSESSIVES, *between, *PREPOSITIONS, *CONJUNCTIONS, *ADJECTIVES, *OBJECTS),
        *(noun for nouns in NOUNS.values() for noun in nouns),
    )
