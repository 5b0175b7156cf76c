//! How English says that something is so, that it changed, and that it is one of several. All in lower case.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Words that say one kind of thing.
pub(super) type Table = LazyLock<HashSet<&'static str>>;

fn set(words: &'static str) -> HashSet<&'static str> {
    words.split_whitespace().collect()
}

/// They link what is spoken of to what is said of it, now.
pub(super) static BE: Table = LazyLock::new(|| set("is isn't are aren't am"));
/// The same, of what may be true of several things at once.
pub(super) static HAVE: Table = LazyLock::new(|| {
    set("has hasn't have haven't does doesn't do don't can can't cannot must mustn't should shouldn't will
    won't may")
});
/// After these a verb has no ending.
pub(super) static PRONOUNS: Table = LazyLock::new(|| set("i we you they"));
/// They stand for somebody or something named before.
pub(super) static STAND_INS: Table = LazyLock::new(|| set("he it she they"));
/// A clause may begin with one of these.
pub(super) static JOINTS: Table = LazyLock::new(|| set("and but so"));
/// What begins with one of these is one, and not one of a sort.
pub(super) static DEFINITE: Table = LazyLock::new(|| set("her his its my our the their your"));
/// Requests begin with them.
pub(super) static REQUESTS: Table = LazyLock::new(|| {
    set("always call deploy indent keep log name never prefer put run send sort store tag use write")
});
/// A word in -s before one of these is a verb.
pub(super) static AFTER_VERBS: Table = LazyLock::new(|| {
    set("a about an as at by every for from her his in into like my near no on our over the their
    through to under until with your")
});
/// Stems of verbs that may be true of several things: that another one is said contradicts nothing.
pub(super) static LISTS: Table = LazyLock::new(|| {
    set("bake bring call collect compet contain cook drink eat enjoy grow hate help includ
    know learn like love make mention need offer open own play prefer recommend remind run sell sing speak studi support teach tri use visit want
    watch work write")
});
/// With one of these after it, such a verb is of one thing: "runs on", "works at", "is read by".
pub(super) static PREPOSITIONS: Table = LazyLock::new(|| set("as at by for from in on out with"));
/// Other words that may be true of several things.
pub(super) static SORTS: Table = LazyLock::new(|| {
    set("able afraid allergic allowed also another available child children colleague daughter famous fan fond friend friends
    good interested keen known made member open part proud responsible son too")
});
/// In a value they say when it holds: with another one there, another value holds.
pub(super) static CONDITIONS: Table =
    LazyLock::new(|| set("during except for if outside unless when where while"));
/// Verbs of what is over, where no ending says so.
pub(super) static PAST: Table = LazyLock::new(|| {
    set("was wasn't were weren't had did didn't ate became began bought broke brought built came caught chose
    cut did drank drew drove fell felt flew forgot found gave got grew heard held hurt kept knew laid learnt led left lent lost made meant
    met paid put ran rang read said sang sat saw sent sold spent spoke stood stole swam taught thought threw told took tore went woke won
    wore wrote")
});
/// They end in -ed and are not over.
pub(super) static NOT_PAST: Table =
    LazyLock::new(|| set("bed bleed breed feed hundred indeed naked need red seed shed sled speed wed"));
/// They say that something is no longer as it was.
pub(super) static CHANGES: Table = LazyLock::new(|| {
    set("abandoned abolished adopted allowed altered amended anymore appointed axed bankrupt banned became become began
    bought broke broken brought burned burnt bust canceled cancelled changed cleared closed converted currently cut
    dead delayed deleted demolished demoted died disbanded discontinued dissolved ditched diverted divorced doubled
    downgraded downsized dropped dumped dyed elected ended engaged enrolled evacuated evicted exchanged expired
    extended fell finally finished fired fixed forbade found gone got graduated grew grown halved handed healed
    hiked hired increased inherited instead introduced joined lapsed lately leaving left lent loaned longer lost
    lowered married meanwhile merged migrated moved moving new now nowadays opened ousted outgrew outgrown passed
    paused pivoted ported postponed promoted pulled pushed quit raised reassigned rebuilt recently recovered
    redecorated redid redone reduced refurbished rehomed relaunched relocated remarried removed renamed renewed
    renovated renumbered reopened repaired replaced rerouted rescheduled reset resettled resigned resolved retired
    reversed reverted revoked reworked rewritten sacked sank scrapped separated settled shaved shifted shortened
    shut signed since slashed sold split started stolen stopped succeeded succeeds sunk suspended swapped switched
    taken terminated threw thrown took torn traded transferred transformed trimmed turned uninstalled updated
    upgraded upsized vacated went widened widowed withdrawn withdrew won wound")
});
/// The same in several words.
pub(super) const CHANGES_IN_WORDS: &[&str] =
    &["any more", "as of", "from now on", "in favour of", "in favor of", "no more", "these days", "used to"];
/// A question with one of these is about what was.
pub(super) static ABOUT_BEFORE: Table = LazyLock::new(|| {
    set("before earlier ex former formerly history original originally
    previous previously was were")
});
/// Numbers in words.
pub(super) static NUMBERS: Table = LazyLock::new(|| {
    set("one two three four five six seven eight nine ten eleven twelve fifteen twenty thirty
    forty fifty sixty hundred thousand")
});
/// Verbs in -s that need nothing after them to be known.
pub(super) static VERBS: Table = LazyLock::new(|| {
    set("costs drives earns eats ends goes lasts lives means needs prefers rides sells sleeps starts
    takes uses weighs works")
});
/// Stems of verbs of choosing.
pub(super) static CHOICES: Table = LazyLock::new(|| set("choos prefer use"));
