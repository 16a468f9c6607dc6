/* SPDX-License-Identifier: MIT */
/*
 * Labels for C++:
 *
 *     cpprof::labels_scope scope{{"route", path}, {"items", n, "count"}};
 *
 * The rest of the block runs under these labels, over the current ones; they
 * are taken off however it ends. For a set that is used again and again:
 *
 *     static const cpprof::labels idle{{"state", "idle"}};
 *
 *     cpprof::labels_scope idle_scope{idle};
 *
 * Nothing here throws; without memory the labels are left out.
 */
#ifndef CPPROF_LABELS_HPP
#define CPPROF_LABELS_HPP

#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

#include <cpprof/labels.h>

namespace cpprof
{

/* One label, as long as the strings that it was made of. */
class label : public cpprof_label
{
  public:
    label(const char *name, const char *text) noexcept
        : cpprof_label{name, text ? text : "", 0, nullptr}
    {
    }

    label(const char *name, const std::string &text) noexcept
        : label(name, text.c_str())
    {
    }

    template <typename Number, typename = typename std::enable_if<
                                   std::is_integral<Number>::value>::type>
    label(const char *name, Number number,
          const char *number_unit = nullptr) noexcept
        : cpprof_label{name, nullptr, static_cast<std::int64_t>(number),
                       number_unit}
    {
    }
};
static_assert(sizeof(label) == sizeof(cpprof_label), "an array of one is one");

/* A hold on a set, which may be none. Safety: MT; as a shared_ptr. */
class labels
{
  public:
    labels() noexcept = default;

    labels(std::initializer_list<label> list) noexcept : labels(nullptr, list)
    {
    }

    labels(const struct cpprof_labels *parent,
           std::initializer_list<label> list) noexcept
    {
        cpprof_labels_merge(parent, list.begin(), list.size(), &set_, nullptr);
    }

    labels(const labels &other) noexcept : set_(cpprof_labels_ref(other.set_))
    {
    }

    labels(labels &&other) noexcept : set_(other.set_)
    {
        other.set_ = nullptr;
    }

    labels &
    operator=(labels other) noexcept
    {
        struct cpprof_labels *mine = set_;

        set_ = other.set_;
        other.set_ = mine;
        return *this;
    }

    ~labels()
    {
        cpprof_labels_free(set_);
    }

    /* The set, as long as this is there; or the hold on it. */
    struct cpprof_labels *
    get() const noexcept
    {
        return set_;
    }

    struct cpprof_labels *
    release() noexcept
    {
        struct cpprof_labels *set = set_;

        set_ = nullptr;
        return set;
    }

  private:
    struct cpprof_labels *set_ = nullptr;
};

/* From here to the end of the block. Safety: one thread. */
class labels_scope
{
  public:
    labels_scope(std::initializer_list<label> list) noexcept
    {
        cpprof_labels_scope_begin(&scope_, labels(list).release());
    }

    explicit labels_scope(const labels &set) noexcept
    {
        cpprof_labels_scope_begin(&scope_, cpprof_labels_ref(set.get()));
    }

    labels_scope(const labels_scope &) = delete;
    labels_scope &
    operator=(const labels_scope &) = delete;

    ~labels_scope()
    {
        cpprof_labels_scope_end(&scope_);
    }

  private:
    cpprof_labels_scope scope_ = {sizeof(struct cpprof_labels_scope), nullptr,
                                  nullptr};
};

} // namespace cpprof

#endif
