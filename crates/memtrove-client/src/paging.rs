//! Lists that come in pages, as one stream.

use crate::Result;
use crate::conversations::{Page, PageRequest};
use futures_util::stream::{self, Stream, TryStreamExt};

/// Where the next page begins.
enum Next<C> {
    From(Option<C>),
    Nowhere,
}

/// Everything on all pages, each asked for when the one before it has been taken.
pub(crate) fn pages<T, C, F, Fut>(first: Option<C>, fetch: F) -> impl Stream<Item = Result<T>> + Send
where
    T: Send,
    C: Send,
    F: Fn(Option<C>) -> Fut + Send + Sync,
    Fut: Future<Output = Result<(Vec<T>, Option<C>)>> + Send,
{
    let begin = (Next::From(first), fetch);
    stream::try_unfold(begin, |(next, fetch)| async move {
        let Next::From(cursor) = next else { return Ok(None) };
        let (items, cursor) = fetch(cursor).await?;
        let next = cursor.map_or(Next::Nowhere, |cursor| Next::From(Some(cursor)));
        Ok(Some((stream::iter(items.into_iter().map(Ok)), (next, fetch))))
    })
    .try_flatten()
}

/// The same for the lists whose parts are [`Page`]s.
pub(crate) fn listed<T, F, Fut>(first: PageRequest, fetch: F) -> impl Stream<Item = Result<T>> + Send
where
    T: Send,
    F: Fn(PageRequest) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Page<T>>> + Send,
{
    pages(first.after, move |after| {
        let page = fetch(PageRequest { after, limit: first.limit });
        async move { page.await.map(|page| (page.data, page.after_cursor)) }
    })
}
