//! Logs what Redis keeps of the accepted jobs. With `redis.require_durable` a daemon serves no Redis
//! that forgets them.

use tracing::{debug, info, warn};

use crate::error::{Error, Exit};
use crate::store::{RedisState, Store, StoreError};

/// Asks Redis what it keeps of the accepted jobs. Returns `None` if it cannot tell now, and need not.
///
/// # Errors
/// [`StoreError`] if `redis.require_durable` is set and Redis does not answer.
pub(super) async fn ask_durability(
    store: &Store,
    is_required: bool,
) -> Result<Option<RedisState>, StoreError> {
    match store.redis_state(false).await {
        Ok(state) => Ok(Some(state)),
        Err(error) if is_required => Err(error),
        Err(error) => {
            debug!("{error}");
            Ok(None)
        }
    }
}

/// Logs what Redis keeps of the accepted jobs, and warns of what it may lose.
///
/// # Errors
/// [`Exit::Config`] if `redis.require_durable` is set and Redis is not durable, or does not say.
pub(super) fn check_durability(
    store: &Store,
    state: &RedisState,
    is_required: bool,
) -> Result<(), Error> {
    info!("redis at {} keeps {}", store.address(), state.keeps());
    if is_required && state.is_durable() != Some(true) {
        return Err(Error::new(Exit::Config, not_durable(&store.address(), state)));
    }
    for danger in state.dangers() {
        warn!("{danger}");
    }
    Ok(())
}

/// Returns the message that rejects a Redis that is not durable.
pub fn not_durable(address: &str, state: &RedisState) -> String {
    let reason = match state.dangers().as_slice() {
        [] => "whether it is durable cannot be known, as its user may not call INFO; allow +info \
               in its access control list"
            .to_owned(),
        dangers => dangers.join("; "),
    };
    format!(
        "cannot serve with redis at {address}: redis.require_durable is set, but {reason}; or set \
         redis.require_durable = false"
    )
}
