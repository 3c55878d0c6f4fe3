//! Rules against independent arithmetic, published values, and their own documentation.

mod field_reports;
mod golden;
mod options;
mod oracle;
mod replicas;
mod store;
