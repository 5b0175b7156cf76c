//! Scopes that the database searches, on PostgreSQL: held to the suite of memories, and compared with those that nodes
//! search in their memory.

mod life;
mod search;
mod tended;
mod world;

mod in_the_database {
    // All of them but one: how many pass a threshold is counted exactly only where nodes search.
    memtrove_testkit::memory_suite!(super::tended::open;
        everything_of_a_time_is_found_where_nothing_else_is_asked_for,
        a_half_says_what_it_can_do_and_that_it_is_well,
        an_entry_comes_back_as_it_was_written,
        an_unknown_id_is_nothing,
        a_new_version_takes_the_place_of_the_old_one,
        a_removed_entry_is_nowhere,
        a_stale_write_changes_nothing,
        writing_what_is_not_there_is_a_conflict,
        an_insert_that_is_repeated_does_no_harm,
        a_batch_is_done_whole_or_not_at_all,
        a_fact_is_stated_once_in_a_scope,
        a_request_under_a_known_key_is_answered_as_before,
        one_of_many_writers_of_a_version_wins,
        changes_that_are_tried_again_are_never_lost,
        tenants_never_meet,
        scopes_never_meet_whatever_they_are_called,
        a_page_is_newest_first,
        pages_together_are_the_whole,
        entries_that_come_and_go_disturb_no_page,
        what_has_expired_does_not_exist,
        embeddings_come_along_if_wanted,
        a_span_ends_at_its_instant,
        policies_hide_entries_from_lists_searches_and_counts,
        a_scan_agrees_with_a_plain_one,
        a_write_is_found_at_once,
        the_least_score_is_inclusive,
        a_filter_comes_before_the_limit,
        what_has_no_direction_is_similar_to_nothing,
        only_vectors_of_one_space_are_compared,
        words_are_found_without_any_vector,
        words_are_found_in_other_forms_and_though_a_letter_is_wrong,
        words_and_meaning_both_count,
        a_long_entry_is_found_by_its_best_piece,
        words_that_stand_together_outweigh_words_of_many_pieces,
        among_equals_the_more_relevant_and_the_later_come_first,
        entries_that_may_conflict_are_all_named,
        searches_beside_writers_see_whole_entries,
        a_search_agrees_with_a_plain_one,
    );
}
