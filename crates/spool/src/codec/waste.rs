//! Encoding and decoding of the records of the waste lens; the shapes stand in the parent's table.

use super::{COMPILED, DecodeError, Reader, WASTE, Writer, unknown};
use crate::waste::{Access, Compiled, Method, Waste};
use borescope_waste::Source;

impl Writer {
    pub(super) fn waste(&mut self, waste: &Waste) {
        let Waste {
            source,
            rate,
            tolerance_ppm,
            watches,
            attached,
        } = *waste;
        self.byte(WASTE);
        self.byte(source.code() as u8);
        self.int(rate);
        self.int(tolerance_ppm);
        self.byte(watches);
        self.byte(u8::from(attached));
    }

    pub(super) fn compiled(&mut self, compiled: &Compiled) {
        let Compiled {
            class,
            source_file,
            methods,
        } = compiled;
        self.byte(COMPILED);
        self.string(class);
        self.option(source_file.as_ref(), |w, file| w.string(file));
        self.len(methods.len());
        for method in methods {
            let Method {
                number,
                name,
                descriptor,
                lines,
                accesses,
            } = method;
            self.int(*number);
            self.string(name);
            self.string(descriptor);
            self.len(lines.len());
            let mut before = 0u16;
            for &(bci, line) in lines {
                self.int(bci.wrapping_sub(before));
                self.int(line);
                before = bci;
            }
            self.option(accesses.as_ref(), |w, accesses| {
                w.len(accesses.len());
                let mut before = 0u16;
                for access in accesses {
                    let Access {
                        bci,
                        opcode,
                        descriptor,
                    } = *access;
                    w.int(bci.wrapping_sub(before));
                    w.byte(opcode);
                    w.option(descriptor.as_ref(), |w, first| w.byte(*first));
                    before = bci;
                }
            });
        }
    }
}

impl Reader<'_> {
    pub(super) fn waste(&mut self) -> Result<Waste, DecodeError> {
        let source = self.byte()?;
        Ok(Waste {
            source: Source::from_code(source.into())
                .ok_or_else(|| unknown("source of samples", source))?,
            rate: self.int()?,
            tolerance_ppm: self.int()?,
            watches: self.byte()?,
            attached: self.bits("bits of the lens", 1)? != 0,
        })
    }

    pub(super) fn compiled(&mut self) -> Result<Compiled, DecodeError> {
        Ok(Compiled {
            class: self.string()?,
            source_file: self.option(Self::string)?,
            methods: self.list(5, Self::compiled_method)?,
        })
    }

    fn compiled_method(&mut self) -> Result<Method, DecodeError> {
        let (number, name, descriptor) = (self.u64()?, self.string()?, self.string()?);
        let mut before = 0u16;
        let lines = self.list(2, |r| {
            before = before.wrapping_add(r.int()?);
            Ok((before, r.int()?))
        })?;
        let accesses = self.option(|r| {
            let mut before = 0u16;
            r.list(3, |r| {
                before = before.wrapping_add(r.int()?);
                Ok(Access {
                    bci: before,
                    opcode: r.byte()?,
                    descriptor: r.option(Self::byte)?,
                })
            })
        })?;
        Ok(Method {
            number,
            name,
            descriptor,
            lines,
            accesses,
        })
    }
}
