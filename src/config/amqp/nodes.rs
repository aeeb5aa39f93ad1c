//! The nodes and brokers of the topology, as the configuration names them.

use crate::proto::word_table::words;
use serde::{Deserialize, Serialize};

words! {
    #[derive(Default, Deserialize)]
    AmqpMode;
    /// One queue for all keys, and one pool of dispatchers.
    #[default]
    Unified = "unified",
    /// A queue per key, and a pool per broker.
    Matrix = "matrix",
}

words! {
    #[derive(PartialOrd, Ord, Deserialize)]
    Node;
    /// Serves applications.
    AppServer = "appServer",
    /// Keeps the logs and serves administration.
    Admin = "admin",
    /// Serves migrations and the warehouse.
    Segundo = "segundo",
    /// Serves further reads and writes.
    Tercero = "tercero",
}

impl Node {
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|node| node.as_str() == name)
    }
}

macro_rules! brokers {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal on $node:ident: $keys:expr;)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum BrokerName {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+
        }

        impl BrokerName {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            pub fn node(self) -> Node {
                match self { $(Self::$variant => Node::$node,)+ }
            }

            pub fn keys(self) -> &'static [&'static str] {
                match self { $(Self::$variant => &$keys,)+ }
            }
        }
    };
}

brokers! {
    /// Reads.
    R = "rBroker" on AppServer: ["rec.read", "rel.read"];
    /// Writes.
    W = "wBroker" on AppServer: ["rec.write", "rel.write"];
    /// Bulk operations.
    M = "mBroker" on AppServer: ["rec.obj", "rel.obj"];
    /// Administrative events, inwards.
    AdminIn = "adminBrokerIn" on Admin: ["adm"];
    /// Administrative events, outwards.
    AdminOut = "adminBrokerOut" on Admin: ["adm"];
    /// Stores log events.
    AdminLogs = "adminLogsBroker" on Admin: ["log"];
    /// Writes log events to the journal.
    AdminSyslog = "adminSyslogBroker" on Admin: ["log"];
    /// Gives log events to the routes that name it.
    AdminGraph = "adminGraphBroker" on Admin: ["log"];
    /// The warehouse.
    Warehouse = "whBroker" on Segundo: ["mig"];
    /// Migrations.
    C = "cBroker" on Segundo: ["mig"];
    /// Further reads and writes.
    U = "uBroker" on Tercero: ["rec.read", "rec.write"];
    /// Further reads and writes.
    S = "sBroker" on Tercero: ["rec.read", "rec.write"];
}
