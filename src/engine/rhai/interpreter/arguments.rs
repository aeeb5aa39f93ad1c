//! Limits the arguments of a call while a script is parsed.
//!
//! To find a function, Rhai may try 65 536 combinations of the types of its arguments. It looks at all
//! arguments each time and polls nothing meanwhile: one call with 400 000 of them takes minutes.

use std::cell::RefCell;

use ::rhai::Token;

/// The limit of arguments of one call, and of parameters of one function.
pub(super) const ARGUMENTS_MAX: usize = 64;

thread_local! {
    /// The commas so far in each bracket that is open, the innermost last. Parsing never leaves its
    /// thread, and never starts inside of another.
    static COMMAS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Forgets the brackets of the script that was parsed before.
pub(super) fn begin() {
    COMMAS.with_borrow_mut(Vec::clear);
}

/// Counts a token of the script; returns false if it begins one argument too many.
pub(super) fn fit(token: &Token) -> bool {
    /// Elements of arrays, maps and blocks have limits of their own, or need none.
    const UNCOUNTED: usize = usize::MAX;
    COMMAS.with_borrow_mut(|open| {
        match token {
            Token::LeftParen => open.push(0),
            Token::LeftBracket | Token::QuestionBracket | Token::LeftBrace | Token::MapStart => {
                open.push(UNCOUNTED);
            }
            Token::RightParen | Token::RightBracket | Token::RightBrace => {
                open.pop();
            }
            Token::Comma => {
                if let Some(commas) = open.last_mut().filter(|commas| **commas != UNCOUNTED) {
                    *commas += 1;
                    return *commas < ARGUMENTS_MAX;
                }
            }
            _ => {}
        }
        true
    })
}
