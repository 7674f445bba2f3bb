"""A user as other projects have them: nothing is called as in Django's own."""

from __future__ import annotations

import uuid

from django.contrib.auth.models import (
    AbstractBaseUser,
    BaseUserManager,
    Group,
    PermissionsMixin,
)
from django.db import models


class PersonManager(BaseUserManager["Person"]):
    def create(self, email: str, **fields: object) -> Person:
        person = self.model(email=email, **fields)
        person.set_unusable_password()
        person.save(using=self._db)
        return person


class Person(AbstractBaseUser, PermissionsMixin):
    key = models.UUIDField(primary_key=True, default=uuid.uuid4)
    email = models.EmailField(unique=True)
    is_staff = models.BooleanField(default=True)
    is_active = models.BooleanField(default=True)
    groups = models.ManyToManyField(
        Group, blank=True, related_name="people", related_query_name="person"
    )

    objects = PersonManager()

    USERNAME_FIELD = "email"

    def __str__(self) -> str:
        return self.email
