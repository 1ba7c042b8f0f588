/* What networks for images share: their parameters. */
#ifndef CS_WORKLOAD_IMAGE_H
#define CS_WORKLOAD_IMAGE_H

#include "sim/model/zoo/zoo.h"

typedef struct cs_image_params {
    uint32_t image, classes;
} cs_image_params;

#define CS_IMAGE_FIELD(struct_, size)                                                              \
    {                                                                                              \
        "image", CS_FIELD_COUNT, offsetof(struct_, image),                                         \
            .fallback = size, .min = 1, .max = 1 << 16,                                            \
            .doc = "height and width of the image, pixels"                                         \
    }

#define CS_CLASSES_FIELD(struct_)                                                                  \
    {                                                                                              \
        "classes", CS_FIELD_COUNT, offsetof(struct_, classes),                                     \
            .fallback = "1000", .min = 1, .max = 1 << 24, .doc = "number of classes"               \
    }

/* image, classes; ended by {0}. */
extern const cs_field cs_image_fields[];

/* Three channels of image x image pixels. */
cs_tensor cs_net_picture(cs_net *net, const cs_image_params *params);

#endif
