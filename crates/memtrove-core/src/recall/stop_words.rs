//! Words that say nothing about what a text is about. A question is full of them, and an answer has none of those.
//!
//! Only words of grammar: articles, pronouns, prepositions, auxiliaries, question words. Lists that go further lose: "get",
//! "like" or "long" may be all that a question and its answer have in common. A language without a list keeps all its
//! words.

use crate::text::fold;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// The words of grammar of a language, to be had once for a text and asked for each of its words.
#[derive(Clone, Copy, Default)]
pub(crate) struct Grammar {
    stop_words: Option<&'static HashSet<String>>,
    negations: &'static [&'static str],
}

impl Grammar {
    pub fn of(language: Option<&str>) -> Self {
        let negations = NEGATIONS.iter().find(|(name, _)| language == Some(*name));
        Self {
            stop_words: language.and_then(|language| FOLDED.get(language)),
            negations: negations.map_or(&[], |(_, words)| words),
        }
    }

    /// Whether a word, folded, is one of its language's stop words.
    pub fn is_stop_word(&self, word: &str) -> bool {
        self.stop_words.is_some_and(|words| words.contains(word))
    }

    /// Whether a word, as it is written, denies what is said.
    pub fn denies(&self, written: &str) -> bool {
        if written.is_ascii() {
            return self.negations.iter().any(|denies| denies.eq_ignore_ascii_case(written));
        }
        fold(written).is_some_and(|word| self.negations.contains(&word.as_str()))
    }
}

/// Words that deny, folded. Russian and French have others that stand with every one of these.
const NEGATIONS: [(&str, &[&str]); 11] = [
    ("danish", &["aldrig", "ikke", "ingen", "intet", "uden"]),
    ("dutch", &["geen", "niet", "nooit", "zonder"]),
    ("english", &["cannot", "neither", "never", "no", "nobody", "none", "nor", "not", "nothing", "without"]),
    ("french", &["aucun", "aucune", "jamais", "pas", "rien", "sans"]),
    ("german", &["kein", "keine", "keinen", "keiner", "keinem", "nichts", "nicht", "nie", "niemals", "ohne"]),
    ("italian", &["mai", "nessun", "nessuna", "niente", "non", "senza"]),
    ("norwegian", &["aldri", "ikke", "ingen", "uten"]),
    ("portuguese", &["jamais", "nao", "nenhum", "nenhuma", "nunca", "sem"]),
    ("russian", &["без", "не", "нет", "ни", "никогда"]),
    ("spanish", &["jamas", "ningun", "ninguna", "no", "nunca", "sin"]),
    ("swedish", &["aldrig", "ingen", "inte", "utan"]),
];

static FOLDED: LazyLock<HashMap<&str, HashSet<String>>> = LazyLock::new(|| {
    let folded = |words: &str| words.split_whitespace().filter_map(fold).collect();
    WORDS.into_iter().map(|(language, words)| (language, folded(words))).collect()
});

const WORDS: [(&str, &str); 11] = [
    ("danish", DANISH),
    ("dutch", DUTCH),
    ("english", ENGLISH),
    ("french", FRENCH),
    ("german", GERMAN),
    ("italian", ITALIAN),
    ("norwegian", NORWEGIAN),
    ("portuguese", PORTUGUESE),
    ("russian", RUSSIAN),
    ("spanish", SPANISH),
    ("swedish", SWEDISH),
];

/// With what is left of "isn't" and "we'll" when they are split.
const ENGLISH: &str = "a about after all also am an and any are as at be because been before being but by can could did do
    does doing for from had has have having he her here hers him his how i if in into is it its just me more most my no nor
    not of off on once only or other our out over own same she should so some such than that the their them then there these
    they this those through to too under until up very was we were what when where which while who whom why will with would
    you your
    s t ll re ve m d don didn doesn isn wasn couldn wouldn shouldn aren weren haven hasn hadn won";

const GERMAN: &str = "aber alle allem allen aller alles als also am an auch auf aus bei beim bin bis bist da damit dann das
    dass dein deine deinem deinen deiner dem den denn der des dessen dich die dies diese diesem diesen dieser dieses dir doch
    dort du durch ein eine einem einen einer eines er es etwas euch euer eure für gegen hab habe haben hat hatte hatten hier
    hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in ins ist ja jede jedem jeden jeder jedes kann kein keine
    können man mein meine meinem meinen meiner mich mir mit muss nach nicht noch nun nur ob oder ohne sehr sein seine seinem
    seinen seiner sich sie sind so solche soll sollte über um und uns unser unsere unter vom von vor war waren warum was weil
    welche welchem welchen welcher welches wem wen wenn wer werden wessen wie wieso will wir wird wo woher wohin wurde wurden
    zu zum zur zwischen";

const FRENCH: &str = "à ai as au aux avait avec avez avons c ce ces cet cette ceux chez comme comment d dans de des donc dont
    du elle elles en es est et étaient était été être eu fait ici il ils j je l la là le les leur leurs lui m ma mais me même
    mes moi mon n ne ni nos notre nous on ont ou où par pas plus pour pourquoi qu quand que quel quelle quelles quels qui quoi
    s sa sans se sera ses si son sont sous suis sur t ta te tes toi ton tous tout toute toutes très tu un une vos votre vous y";

const SPANISH: &str = "a al algo ante antes como cómo con cual cuál cuales cuáles cuando cuándo de del desde donde dónde
    durante e el él ella ellas ellos en entre era eran es esa esas ese eso esos esta está están estas este esto estos fue
    fueron ha había habían han has hasta hay he la las le les lo los más me mi mí mis mucho muy nada ni no nos nosotros
    nuestra nuestro o os otra otro para pero por porque qué que quien quién quienes se sea ser si sí sin sobre son soy su sus
    también tan te tiene tu tú tus un una unas uno unos y ya yo";

const ITALIAN: &str = "a ad agli ai al alla alle allo anche avere aveva c che chi ci come con cosa cui da dagli dai dal dalla
    dalle dallo degli dei del della delle dello di do dove e è ed era erano essere fra gli ha hai hanno ho i il in io l la le
    lei li lo loro lui ma me mi mia mie miei mio ne negli nei nel nella nelle nello no noi nostra nostro o perché per più
    quale quali quando quanto quella quelle quelli quello questa queste questi questo se sei si sia siamo sono sta su sua sue
    sugli sui sul sulla sulle sullo suo suoi ti tra tu tua tue tuo tuoi tutti tutto un una uno vi voi vostra vostro";

const PORTUGUESE: &str = "a à ao aos aquela aquele aquilo as às até com como da das de dela dele deles depois do dos e é ela
    elas ele eles em entre era eram essa esse esta está estão estas este estes eu foi foram há isso isto já lhe mais mas me
    mesmo meu meus minha minhas muito na não nas nem no nos nós nossa nosso num numa o onde os ou para pela pelas pelo pelos
    por porque qual quais quando que quem são se sem ser seu seus só sua suas também te tem têm teu tinha tu tua um uma você
    vocês";

const DUTCH: &str = "aan al alles als altijd ben bij daar dan dat de der deze die dit doch doen door dus een eens en er ge
    geen had heb hebben heeft hem het hier hij hoe hun ik in is ja je jij jou jouw jullie kan kon maar me meer men met mij
    mijn moet na naar niet niets nog nu of om omdat onder ons ook op over te tegen toch toen tot u uit uw van veel voor waar
    waarom wanneer want waren was wat we welk welke werd wezen wie wij wil worden wordt ze zelf zich zij zijn zo zonder zou";

const SWEDISH: &str = "alla allt att av bara blev bli blir då de dem den denna deras dess det detta dig din dina ditt du där
    efter ej eller en er ett för från ha hade han hans har henne hennes hon honom hur här i icke inte ingen jag ju kan kunde
    man med mellan men mig min mina mitt mot mycket när någon något några nu och om oss på samma sedan sig sin sina sitt ska
    skulle som så till under upp ut utan vad var vara varför varit vem vi vid vilka vilken vilket vår våra är över";

const DANISH: &str = "af alle alt anden at blev blive bliver da de dem den denne der deres det dette dig din dine dit dog du
    efter eller en end er et for fra ham han hans har havde have hende hendes her hos hun hvad hvem hvilke hvilken hvilket
    hvis hvor hvordan hvorfor hvornår i ikke ind jeg jer kan kunne man mange med meget men mig min mine mit mod når ned noget
    nogle nu og også om op os over på selv sig sin sine sit skal skulle som sådan til ud under var vi vil ville vor være
    været";

const NORWEGIAN: &str = "alle alt at av bare ble bli blir da de deg dem den denne der deres det dette din dine ditt du eller en
    enn er et etter for fordi fra før ha hadde han hans har henne hennes her hos hun hva hvem hvilken hvilket hvis hvor
    hvordan hvorfor i ikke ingen inn jeg kan kunne man med meg men mens mer min mine mitt mot mye når ned noe noen nå og også
    om opp oss over på seg selv sin sine sitt skal skulle slik som så til ut uten var vi vil ville være vært vår ved";

const RUSSIAN: &str = "а без бы был была были было быть в вам вас во вот все всё всего вы где да даже для до его ее её если
    есть еще ещё же за и из или им их к как какая какие какой кто когда ко которая которые который ли меня мне много мой моя
    мы на над нам нас не него нее неё нет ни них но ну о об он она они оно от по под почему при с сам свой себя со так такой
    там то тоже только того той тот ты у уже чего чей чем что чтобы это этот эта эти я";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Analyzer;

    #[test]
    fn every_list_belongs_to_a_language_that_has_stems() {
        for (language, _) in WORDS {
            assert!(Analyzer::new(language).is_some(), "{language}");
        }
    }

    #[test]
    fn stop_words_are_known_without_their_accents() {
        let is_one = |language, word| Grammar::of(language).is_stop_word(word);
        assert!(is_one(Some("english"), "which"));
        assert!(is_one(Some("german"), "fur"));
        assert!(is_one(Some("french"), "etait"));
        assert!(!is_one(Some("english"), "fur"));
        assert!(!is_one(Some("tamil"), "which") && !is_one(None, "which"));
    }

    #[test]
    fn what_denies_does_so_however_it_is_written() {
        let denies = |language, word| Grammar::of(language).denies(word);
        assert!(denies(Some("english"), "not") && denies(Some("english"), "Never"));
        assert!(denies(Some("portuguese"), "NÃO") && denies(Some("russian"), "Нет"));
        assert!(!denies(Some("english"), "note") && !denies(Some("german"), "no") && !denies(None, "not"));
    }
}
