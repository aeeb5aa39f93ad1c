//! Logs what Redis keeps of the accepted jobs. With `redis.require_durable` a daemon serves no Redis
//! that forgets them.

use tracing::{debug, info, warn};

use crate::error::{Error, Exit};
use crate::store::{RedisState, Store};

/// Logs what Redis keeps of the accepted jobs, and warns of what it may lose.
///
/// # Errors
/// [`Exit::Config`] if `redis.require_durable` is set and Redis is not durable, or does not say.
pub(super) async fn check_durability(store: &Store, is_required: bool) -> Result<(), Error> {
    let state = match store.redis_state(false).await {
        Ok(state) => state,
        Err(error) if is_required => {
            let message = format!("cannot learn whether redis is durable: {error}");
            return Err(Error::new(Exit::Unavailable, message));
        }
        Err(error) => {
            debug!("{error}");
            return Ok(());
        }
    };
    info!("redis at {} keeps {}", store.address(), state.keeps());
    if is_required && state.is_durable() != Some(true) {
        return Err(Error::new(Exit::Config, not_durable(store.address(), &state)));
    }
    for danger in state.dangers() {
        warn!("{danger}");
    }
    Ok(())
}

/// Returns the message with which a Redis that is not durable is rejected.
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
