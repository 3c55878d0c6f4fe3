//! Kernels from source at run time: [`compile`].

use crate::{Error, Result, library};
use cudarc::nvrtc::result::{self, NvrtcError};
use cudarc::nvrtc::sys;
use std::ffi::{CStr, CString, c_char};

/// A file that the source includes, by the name it includes it by.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// Its name, as in `#include "rules.cuh"`.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// Compiles CUDA C++ to an image for [`Device::load`](crate::Device::load).
///
/// `name` stands for the source in messages; `options` are those of the run-time compiler. With
/// `--gpu-architecture=sm_90` the image is machine code, which a driver of an older minor version
/// than the compiler takes too; with `compute_90` it is PTX, which such a driver may refuse.
///
/// # Errors
/// [`Error::NoLibrary`] without the run-time compiler, [`Error::Compile`] with its messages.
pub fn compile(
    name: &str,
    source: &str,
    headers: &[Header<'_>],
    options: &[&str],
) -> Result<Vec<u8>> {
    library::compiler()?;
    let text = |text: &str| {
        CString::new(text).map_err(|_| Error::Compile {
            name: name.to_owned(),
            log: "a zero in the text".to_owned(),
        })
    };
    let (title, source) = (text(name)?, text(source)?);
    let names: Vec<CString> =
        headers.iter().map(|header| text(header.name)).collect::<Result<_>>()?;
    let texts: Vec<CString> =
        headers.iter().map(|header| text(header.text)).collect::<Result<_>>()?;
    let program = Program::new(&source, &title, &texts, &names)?;
    let done = program.compile(options);
    if done.is_err() {
        return Err(Error::Compile { name: name.to_owned(), log: program.log() });
    }
    program.image()
}

/// A program of the run-time compiler.
struct Program(sys::nvrtcProgram);

impl Program {
    fn new(source: &CStr, name: &CStr, texts: &[CString], names: &[CString]) -> Result<Self> {
        let pointers = |list: &[CString]| {
            list.iter().map(|text| text.as_ptr()).collect::<Vec<*const c_char>>()
        };
        let (texts, names) = (pointers(texts), pointers(names));
        let mut program = std::ptr::null_mut();
        let (source, name, count) = (source.as_ptr(), name.as_ptr(), texts.len() as i32);
        // SAFETY: texts that end in zeros and outlive the call.
        unsafe {
            sys::nvrtcCreateProgram(
                &raw mut program,
                source,
                name,
                count,
                texts.as_ptr(),
                names.as_ptr(),
            )
        }
        .result()
        .map_err(|error| failed("nvrtcCreateProgram", error))?;
        Ok(Self(program))
    }

    fn compile(&self, options: &[&str]) -> Result<(), NvrtcError> {
        // SAFETY: a program that lives.
        unsafe { result::compile_program(self.0, options) }
    }

    /// Machine code where there is any, else PTX.
    fn image(&self) -> Result<Vec<u8>> {
        let mut bytes = 0;
        // SAFETY: a program that was compiled.
        unsafe { sys::nvrtcGetCUBINSize(self.0, &raw mut bytes) }
            .result()
            .map_err(|error| failed("nvrtcGetCUBINSize", error))?;
        if bytes == 0 {
            return self.text();
        }
        let mut image = vec![0_u8; bytes];
        // SAFETY: as many bytes as the program says.
        unsafe { sys::nvrtcGetCUBIN(self.0, image.as_mut_ptr().cast()) }
            .result()
            .map_err(|error| failed("nvrtcGetCUBIN", error))?;
        Ok(image)
    }

    fn text(&self) -> Result<Vec<u8>> {
        // SAFETY: a program that was compiled.
        let image = unsafe { result::get_ptx(self.0) };
        let image = image.map_err(|error| failed("nvrtcGetPTX", error))?;
        Ok(image.into_iter().map(|byte| byte as u8).take_while(|&byte| byte != 0).collect())
    }

    fn log(&self) -> String {
        // SAFETY: a program that lives.
        let log = unsafe { result::get_program_log(self.0) }.unwrap_or_default();
        let log: Vec<u8> =
            log.into_iter().map(|byte| byte as u8).take_while(|&byte| byte != 0).collect();
        String::from_utf8_lossy(&log).into_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: created once.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}

fn failed(call: &'static str, error: NvrtcError) -> Error {
    Error::Call {
        call,
        name: format!("{:?}", error.0),
        text: "the run-time compiler failed".to_owned(),
    }
}
