//! Buffers of a device for the conformance suite.

use super::DeviceSpace;
use crate::conformance::Memory;
use crate::{Element, Result};
use emb_cuda::{Buffer, View, ViewMut};

impl Memory for DeviceSpace {
    type Buffer<T: Element> = Buffer<T>;

    /// The memory has a home stream of its own: not the one that exchanges it.
    fn store<T: Element>(&self, values: &[T]) -> Result<Buffer<T>> {
        let home = self.stream().device().stream()?;
        let mut buffer = home.uninit(values.len())?;
        home.upload(values, buffer.whole_mut())?;
        Ok(buffer)
    }

    fn view<T: Element>(buffer: &Buffer<T>) -> View<'_, T> {
        buffer.whole()
    }

    fn view_mut<T: Element>(buffer: &mut Buffer<T>) -> ViewMut<'_, T> {
        buffer.whole_mut()
    }

    fn load<T: Element>(&self, buffer: &Buffer<T>, values: &mut [T]) -> Result<()> {
        Ok(buffer.home().download(buffer.whole(), values)?)
    }
}
