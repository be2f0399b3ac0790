//! Pictures that a model is shown (api 2.4: a file part; sandbox-and-definitions c2 for the limits).

use std::fmt;
use std::sync::Arc;

/// A picture of a known format and a bounded size. Copies share its bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    format: ImageFormat,
    bytes: Arc<[u8]>,
}

/// The formats that every provider reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageFormat {
    /// `image/jpeg`
    Jpeg,
    /// `image/png`
    Png,
    /// `image/webp`
    Webp,
}

/// Why bytes are no picture for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// There is no byte, or there are more than [`Image::MAX_BYTES`].
    #[error("a picture has 1 to {max} bytes; this one has {0}", max = Image::MAX_BYTES)]
    Size(usize),
    /// They begin like no JPEG, PNG or WebP.
    #[error("the bytes are neither JPEG nor PNG nor WebP")]
    Format,
}

impl Image {
    /// Most bytes of a picture.
    pub const MAX_BYTES: usize = 8 * 1024 * 1024;

    /// The picture in these bytes. What they are called elsewhere does not matter: their beginning says what they are.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Result<Self, ImageError> {
        let bytes = bytes.into();
        if bytes.is_empty() || bytes.len() > Self::MAX_BYTES {
            return Err(ImageError::Size(bytes.len()));
        }
        let format = ImageFormat::of(&bytes).ok_or(ImageError::Format)?;
        Ok(Self { format, bytes })
    }

    /// Its format.
    pub fn format(&self) -> ImageFormat {
        self.format
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl ImageFormat {
    /// The media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::Webp => "image/webp",
        }
    }

    /// What these bytes begin like.
    fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::Webp),
            _ => None,
        }
    }
}

/// The bytes themselves would fill a log.
impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({}, {} bytes)", self.format.media_type(), self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_says_what_a_picture_is() {
        let format = |bytes: &[u8]| Image::new(bytes).map(|image| image.format());
        assert_eq!(format(b"\xff\xd8\xff\xe0"), Ok(ImageFormat::Jpeg));
        assert_eq!(format(b"\x89PNG\r\n\x1a\n..."), Ok(ImageFormat::Png));
        assert_eq!(format(b"RIFF\0\0\0\0WEBPVP8 "), Ok(ImageFormat::Webp));
        assert_eq!(format(b"GIF89a"), Err(ImageError::Format));
        assert_eq!(format(b""), Err(ImageError::Size(0)));
        let mut large = b"\xff\xd8\xff".to_vec();
        large.resize(Image::MAX_BYTES + 1, 0);
        assert_eq!(format(&large), Err(ImageError::Size(Image::MAX_BYTES + 1)));
        assert_eq!(format!("{:?}", Image::new(&b"\xff\xd8\xff"[..]).unwrap()), "Image(image/jpeg, 3 bytes)");
    }
}
