//! A plan file as JSON that a person can read: one line for each table.

use super::{BlockFile, MapFile, OrderFile, OwnersFile, PlanFile, TableFile, TierFile};
use crate::{Exchange, Layout, Path, Per, Pooling, ReplicaSync};
use std::fmt::{self, Display, Formatter, Write as _};

/// JSON: a head, then one line for each table.
impl Display for PlanFile {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{{")?;
        writeln!(f, "  \"version\": {},", self.version)?;
        writeln!(f, "  \"world\": {},", self.world)?;
        writeln!(f, "  \"node_ranks\": {},", self.node_ranks)?;
        writeln!(f, "  \"fingerprint\": {},", Quoted(&self.fingerprint))?;
        writeln!(f, "  \"tables\": [")?;
        for (number, table) in self.tables.iter().enumerate() {
            let comma = if number + 1 < self.tables.len() { "," } else { "" };
            writeln!(f, "    {table}{comma}")?;
        }
        writeln!(f, "  ]\n}}")
    }
}

impl Display for TableFile {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{{\"table\": {}, ", Quoted(&self.table))?;
        write!(f, "\"rows\": {}, \"dim\": {}, ", self.rows, self.dim)?;
        let pooling = match self.pooling {
            Pooling::Sum => "sum",
            Pooling::Mean => "mean",
            Pooling::None => "none",
        };
        write!(f, "\"element_bytes\": {}, \"pooling\": \"{pooling}\", ", self.element_bytes)?;
        if let Some(features) = &self.features {
            let features: Vec<Quoted> = features.iter().map(|name| Quoted(name)).collect();
            write!(f, "\"features\": {}, ", List(&features))?;
        }
        if let Some(order) = &self.order {
            write!(f, "\"order\": {order}, ")?;
        }
        write!(f, "\"tiers\": {}}}", List(&self.tiers))
    }
}

impl Display for OrderFile {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(places) => write!(f, "{}", List(places)),
            Self::HotFirst { hot } => write!(f, "{{\"hot\": {}}}", List(hot)),
        }
    }
}

impl Display for TierFile {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let layout = match self.layout {
            Layout::Strided => "strided",
            Layout::Contiguous => "contiguous",
        };
        write!(f, "{{\"rows\": {}, \"group\": {}, ", List(&self.rows), self.group)?;
        write!(f, "\"layout\": \"{layout}\", \"exchange\": {}, ", exchange(self.exchange))?;
        write!(f, "\"sync\": {}, \"blocks\": {}}}", sync(self.sync), List(&self.blocks))
    }
}

impl Display for BlockFile {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{{\"columns\": {}, \"map\": {}, ", List(&self.columns), self.map)?;
        match &self.owners {
            OwnersFile::Span(span) => write!(f, "\"owners\": {{\"span\": {}}}}}", List(span)),
            OwnersFile::List(list) => write!(f, "\"owners\": {{\"list\": {}}}}}", List(list)),
        }
    }
}

impl Display for MapFile {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Even => f.write_str("\"even\""),
            Self::Ceil => f.write_str("\"ceil\""),
            Self::Modulo => f.write_str("\"modulo\""),
            Self::Starts(starts) => write!(f, "{{\"starts\": {}}}", List(starts)),
            Self::Permuted { permutation, then } => {
                write!(f, "{{\"permuted\": {{\"permutation\": {permutation}, \"then\": {then}}}}}")
            }
        }
    }
}

fn exchange(exchange: Exchange) -> &'static str {
    match exchange {
        Exchange::Local => r#""local""#,
        Exchange::Reduce { over: Path::Flat } => r#"{"reduce": {"over": "flat"}}"#,
        Exchange::Reduce { over: Path::Hierarchical } => r#"{"reduce": {"over": "hierarchical"}}"#,
        Exchange::Unique { per: Per::Rank } => r#"{"unique": {"per": "rank"}}"#,
        Exchange::Unique { per: Per::Node } => r#"{"unique": {"per": "node"}}"#,
        Exchange::Rows => r#""rows""#,
    }
}

fn sync(sync: ReplicaSync) -> String {
    match sync {
        ReplicaSync::None => r#""none""#.into(),
        ReplicaSync::Weights { every } => format!(r#"{{"weights": {{"every": {every}}}}}"#),
        ReplicaSync::TouchedRows { every } => {
            format!(r#"{{"touched_rows": {{"every": {every}}}}}"#)
        }
        ReplicaSync::Gradients => r#""gradients""#.into(),
        ReplicaSync::FullyShardedReplicas => r#""fully_sharded_replicas""#.into(),
    }
}

struct List<'a, T>(&'a [T]);

impl<T: Display> Display for List<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('[')?;
        for (number, item) in self.0.iter().enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            write!(f, "{comma}{item}")?;
        }
        f.write_char(']')
    }
}

/// A JSON string (RFC 8259, section 7).
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for character in self.0.chars() {
            match character {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                control if control < ' ' => write!(f, "\\u{:04x}", u32::from(control))?,
                other => f.write_char(other)?,
            }
        }
        f.write_char('"')
    }
}
