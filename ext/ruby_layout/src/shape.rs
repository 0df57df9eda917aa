//! Where Ruby 3.2 keeps instance variables of classes, such as their names: by shape. Before, each class had a table,
//! and from 3.3 on what is read here has fields of its own.

use crate::memory::Memory;
use crate::reader::Reader;

// shape.h of Ruby 3.2, on 64-bit machines; `script/layout` has assertions for a C compiler.
const SHAPE_FLAG_SHIFT: u32 = 32;
const SHAPE_SIZE: usize = 32;
/// The variable by which a shape differs from its parent.
const EDGE_NAME: usize = 8;
/// How many variables there are then, of which that is the last one.
const NEXT_IV_INDEX: usize = 16;
const PARENT_ID: usize = 28;
/// The parent of a root.
const INVALID_SHAPE_ID: usize = 0xffff_ffff;
/// `offsetof(struct rb_classext_struct, iv_ptr)`
const CLASSEXT_IV_PTR: usize = 0;
/// More shapes than lead to that of a class: a program's classes have a few hundred variables at most.
const MOST_SHAPES: usize = 1 << 13;

impl<M: Memory> Reader<M> {
    /// Where the shapes of the VM at `vm` are; None if this Ruby has them elsewhere, or its VM has them not yet.
    pub(crate) fn shapes(&self, vm: usize) -> Result<Option<usize>, M::Error> {
        if self.layout.vm_shape_list == 0 {
            return Ok(None);
        }
        let list = vm.wrapping_add(self.layout.vm_shape_list);
        // Behind the list is a reference to the root, which is its first shape.
        let (shapes, root) = (self.memory.word(list)?, self.memory.word(list.wrapping_add(8))?);
        Ok((shapes != 0 && shapes == root).then_some(shapes))
    }

    /// The value of the instance variable `id` of a class with this extension, or 0.
    pub(crate) fn shaped_variable(&self, class: usize, extension: usize, id: usize) -> Result<usize, M::Error> {
        let Some(shapes) = self.shapes else { return Ok(0) };
        let variables = self.memory.word(extension.wrapping_add(CLASSEXT_IV_PTR))?;
        let mut number = self.memory.word(class)? >> SHAPE_FLAG_SHIFT;
        for _ in 0..MOST_SHAPES {
            if number == INVALID_SHAPE_ID {
                return Ok(0);
            }
            let shape = shapes.wrapping_add(number.wrapping_mul(SHAPE_SIZE));
            if self.memory.word(shape.wrapping_add(EDGE_NAME))? == id {
                let index = (self.memory.half(shape.wrapping_add(NEXT_IV_INDEX))? as usize).wrapping_sub(1);
                return self.memory.word(variables.wrapping_add(index.wrapping_mul(size_of::<usize>())));
            }
            number = self.memory.half(shape.wrapping_add(PARENT_ID))? as usize;
        }
        self.memory.reject()?;
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::OwnMemory;

    /// As `struct rb_shape`.
    #[repr(C)]
    struct Shape(usize, usize, u32, u32, u32, u32);

    const NONE: u32 = u32::MAX;

    /// The value of a variable of a class with the shape of this number.
    fn value(shapes: &[Shape], number: usize, id: usize) -> usize {
        let variables = [100_usize, 200];
        let (class, extension) = (number << SHAPE_FLAG_SHIFT, [variables.as_ptr().addr()]);
        // SAFETY: every address that is read is that of a variable here.
        let memory = unsafe { OwnMemory::new() };
        let mut reader = Reader::new(memory, (3, 2, 0)).unwrap();
        reader.shapes = Some(shapes.as_ptr().addr());
        let Ok(value) = reader.shaped_variable((&raw const class).addr(), extension.as_ptr().addr(), id);
        value
    }

    #[test]
    fn a_variable_is_where_the_shape_that_adds_it_says() {
        let shapes = [Shape(0, 0, 0, 0, 0, NONE), Shape(0, 7, 1, 0, 1, 0), Shape(0, 9, 2, 0, 1, 1)];
        let found = [(2, 9), (2, 7), (1, 7), (1, 9), (0, 7)].map(|(number, id)| value(&shapes, number, id));
        assert_eq!(found, [200, 100, 100, 0, 0]);
    }

    #[test]
    fn shapes_in_a_circle_have_an_end() {
        assert_eq!(value(&[Shape(0, 0, 0, 0, 0, 0)], 0, 7), 0);
    }
}
